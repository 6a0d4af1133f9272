# Puts diff.md into the pull request: one comment, found again by its first line. See action.yml.
# A pull request from a fork has a token that may not comment; the job's summary says the same.
set -euo pipefail
mark=$(head -n 1 "$RUNNER_TEMP/diff.md")
comments="repos/$GITHUB_REPOSITORY/issues/$NUMBER/comments"
found=$(gh api --paginate "$comments" --jq ".[] | select(.body | startswith(\"$mark\")) | .id" | head -n 1) || found=
if [ -n "$found" ]; then
  where=(--method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$found")
else
  where=("$comments")
fi
gh api "${where[@]}" -F "body=@$RUNNER_TEMP/diff.md" --silent ||
  echo '::notice::extgate could not comment; see the summary of this job'
