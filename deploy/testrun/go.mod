module github.com/swell-sh/swell/deploy/testrun

go 1.26.0
