#!/usr/bin/env bash
# Scores, compares and asserts; the assertions are checked whatever the comparison says. The exit code is the first that is not 0:
# of the score (without a baseline, or where it could not be made), of the comparison, of the assertions.
set -euo pipefail

words=(--format github --output "$REPORTS")
[ -z "${RUBRIC:-}" ] || words+=(--rubric "$RUBRIC")
[ -z "${EXPECTED:-}" ] || words+=(--expected "$EXPECTED")
[ -z "${JUDGES:-}" ] || words+=(--judges "$JUDGES")
forgiving=()
[ "${ALLOW_UNDECIDED:-false}" != true ] || forgiving+=(--allow-undecided)

if [ -n "${BASELINE:-}" ] && [ ! -f "$BASELINE" ]; then
	echo "::error title=callgrade::the baseline $BASELINE is not there; make it with: callgrade score ... --format ndjson --output $BASELINE"
	exit 4
fi
if [ -n "${BASELINE:-}" ] && [ "$BASELINE" -ef "$REPORTS" ]; then
	echo "::error title=callgrade::the reports would be written over the baseline $BASELINE, and compared with themselves; name another file in the input reports"
	exit 4
fi

code=0
# shellcheck disable=SC2086 # the traces are words and patterns
callgrade score $TRACES "${words[@]}" "${forgiving[@]}" || code=$?
# Beside a baseline a failing trace (2) or an undecided one (3) is what the comparison is about.
if [ -z "${BASELINE:-}" ] || { [ "$code" != 0 ] && [ "$code" != 2 ] && [ "$code" != 3 ]; }; then
	[ "$code" = 0 ] || exit "$code"
fi
code=0
if [ -n "${BASELINE:-}" ]; then
	gated=()
	for name in ${GATED:-}; do gated+=(--on "$name"); done
	callgrade compare "$BASELINE" "$REPORTS" --fail-on-regression --format github "${gated[@]}" "${forgiving[@]}" || code=$?
fi
asserted=()
while IFS= read -r line; do
	[ -z "$line" ] || asserted+=(--assert "$line")
done <<<"${ASSERTIONS:-}"
if [ "${#asserted[@]}" -gt 0 ]; then
	summary=$(mktemp)
	callgrade summarize "$REPORTS" "${asserted[@]}" --format markdown >"$summary" || { failed=$?; [ "$code" != 0 ] || code=$failed; }
	tee -a "${GITHUB_STEP_SUMMARY:-/dev/null}" <"$summary"
fi
exit "$code"
