#!/bin/sh
# Looks for known vulnerabilities that the program can reach, in the database of Go or that of
# GOVULNDB (a URL, file:// too). Only a finding fails, which is govulncheck's exit code 3.
# Without the database nothing is looked at, and this is said: the code is the same as it was.
# Any other failure is shown and said as well; packages that cannot be built fail go vet.
# What cannot be built here is govulncheck itself: that fails, as any tool of make lint.
set -u
db=${GOVULNDB:-https://vuln.go.dev}
govulncheck=$(go tool -modfile=deploy/tools/go.mod -n govulncheck) || exit
# Asked first, because a scan begins with loading all packages from source.
case $("$govulncheck" -db "$db" -version 2>&1) in
*"DB updated:"*) ;;
*)
	echo "govulncheck: NOT CHECKED: no vulnerability database at $db"
	exit 0
	;;
esac
"$govulncheck" -db "$db" ./...
code=$?
case $code in
0) ;;
3) exit 3 ;;
*) echo "govulncheck: NOT CHECKED: it failed with exit code $code, see above" ;;
esac
