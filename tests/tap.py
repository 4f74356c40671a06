# SPDX-License-Identifier: Apache-2.0
"""Checks of a Python test, told in TAP."""
import os


def skip_all(reason):
    """Ends a test before its first check, for want of something: skipped, in CI failed."""
    if os.environ.get("CI"):
        print(f"Bail out! {reason}")
        raise SystemExit(1)
    print(f"1..0 # SKIP {reason}")
    raise SystemExit(0)


class Checks:
    def __init__(self):
        self.count = 0
        self.failed = 0

    def ok(self, good, name, detail=""):
        self.count += 1
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} {self.count} - {name}", flush=True)
        if not good and detail:
            for line in str(detail).splitlines()[-40:]:
                print(f"#   {line}", flush=True)
        return good

    def equal(self, have, want, name):
        return self.ok(have == want, name, f"have {have!r}\nwant {want!r}")

    def finish(self):
        """Of a test that checked nothing nothing is known."""
        if self.count == 0:
            print("Bail out! no check was made", flush=True)
            raise SystemExit(1)
        print(f"1..{self.count}")
        raise SystemExit(1 if self.failed else 0)
