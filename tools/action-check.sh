# Fails the job for a policy that is broken, a statement that does not hold, or a change that `fail-on` names.
set -euo pipefail
export PATH="$RUNNER_TEMP/extgate/bin:$PATH"
given=()
[ -z "${INVENTORY:-}" ] || given=(--inventory "$INVENTORY")
status=0
extgate -w "$WORKSPACE" check ${given[@]+"${given[@]}"} || status=$?
extgate -w "$WORKSPACE" prove ${given[@]+"${given[@]}"} || status=$?
case "$FAIL_ON:$VERDICT:$WIDER" in
  never:*) ;;
  wider:*:true) echo '::error::an agent may see or use more than before'; status=3 ;;
  wider:undecided:*) echo '::error::it could not be decided whether an agent may use more'; status=5 ;;
  wider:*) ;;
  any:equal:*) ;;
  any:*) echo '::error::what agents may see or use changes'; status=3 ;;
  *) echo "::error::fail-on: \`$FAIL_ON\` is not never, wider or any"; status=1 ;;
esac
exit "$status"
