# Writes what changed to diff.md and the job's summary, and the verdict to the step's outputs. See action.yml.
set -euo pipefail
export PATH="$RUNNER_TEMP/extgate/bin:$PATH"
given=()
[ -z "${INVENTORY:-}" ] || given=(--inventory "$INVENTORY")
git cat-file -e "$BASE^{commit}" 2>/dev/null || git fetch -q --depth=1 origin "$BASE"
inside=${WORKSPACE#./}
[ "$inside" != . ] || inside=

diff() { extgate -w "$WORKSPACE" diff "$BASE:$inside" "$WORKSPACE" ${given[@]+"${given[@]}"} --exit-zero "$@"; }
diff --markdown >"$RUNNER_TEMP/diff.md"
diff --json >"$RUNNER_TEMP/diff.json"
cat "$RUNNER_TEMP/diff.md" >>"$GITHUB_STEP_SUMMARY"
python3 - "$RUNNER_TEMP/diff.json" >>"$GITHUB_OUTPUT" <<'PYTHON'
import json
import sys

report = json.load(open(sys.argv[1], encoding="utf-8"))
print(f"verdict={report['verdict']}")
print(f"wider={str(any(agent['verdict'] in ('wider', 'both') for agent in report['agents'])).lower()}")
PYTHON
