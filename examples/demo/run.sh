
step "one page of it all"
"$tranche" report "$demo/measurements.csv" "$demo/plan.json" --title "tranche demo" -o "$demo/report.html"
echo "$demo/report.html"
