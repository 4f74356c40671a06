{{/* SPDX-License-Identifier: Apache-2.0 */}}
{{/* Two releases in one cluster would fight over the same GPUs, so cluster-wide names are fixed. */}}

{{- define "tranche.labels" -}}
app.kubernetes.io/name: tranche
app.kubernetes.io/part-of: tranche
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "tranche.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- define "tranche.agentNamespace" -}}
{{ .Values.agent.namespace | default .Release.Namespace }}
{{- end }}

{{/* What every container of the controller's side may do: nothing but run. */}}
{{- define "tranche.restricted" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities: {drop: [ALL]}
seccompProfile: {type: RuntimeDefault}
{{- end }}
