#!/bin/sh
# Looks for known vulnerabilities that the program can reach. Where the
# vulnerability database cannot be fetched, it says so and is no failure: the
# code is the same as it was.
set -u
out=$(go tool -modfile=deploy/tools/go.mod govulncheck ./... 2>&1)
code=$?
printf '%s\n' "$out"
case "$out" in
*"fetching vulnerabilities"*|*"no such host"*|*"Forbidden"*|*"connection refused"*|*"i/o timeout"*)
	echo "govulncheck: NOT CHECKED: the vulnerability database cannot be reached from here"
	exit 0
	;;
esac
exit $code
