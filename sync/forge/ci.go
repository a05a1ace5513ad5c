// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/config/smallfile"
)

// Job is what a job of continuous integration says of itself in its environment.
type Job struct {
	Config
	// Pull is the number of the pull request that it runs for; 0: none, or it is known
	// by its Head alone.
	Pull int
	Head config.Commit // empty: not said
	// Unnamed says that Head may be of any repository: no event names pull requests of forks.
	Unnamed bool
	URL     string // of the job, for people
}

// ErrNoJob means that this is no job of continuous integration that is known.
var ErrNoJob = errors.New("this is no job of GitHub Actions, Gitea Actions or GitLab CI")

// tokenVariables are where a job's token is looked for, in this order. One for another forge is
// not sent to this one. Gitea Actions has its own token as GITHUB_TOKEN, too.
var tokenVariables = map[Type][]string{
	GitHub: {"SWELL_FORGE_TOKEN", "GITHUB_TOKEN"},
	GitLab: {"SWELL_FORGE_TOKEN", "GITLAB_TOKEN"},
	Gitea:  {"SWELL_FORGE_TOKEN", "GITEA_TOKEN", "GITHUB_TOKEN"},
}

// ReadJob reads the environment of a job.
func ReadJob(getenv func(string) string) (Job, error) {
	switch {
	case getenv("GITEA_ACTIONS") == "true", getenv("FORGEJO_ACTIONS") == "true": // they say GITHUB_ACTIONS, too
		job, err := readActions(getenv, Gitea)
		job.API, job.JobLogin = "", "gitea-actions" // the SDK knows the API
		if getenv("FORGEJO_ACTIONS") == "true" {
			job.JobLogin = "forgejo-actions"
		}
		return job, err
	case getenv("GITHUB_ACTIONS") == "true":
		job, err := readActions(getenv, GitHub)
		job.JobLogin = "github-actions[bot]"
		return job, err
	case getenv("GITLAB_CI") == "true":
		return readGitLab(getenv)
	}
	return Job{}, ErrNoJob
}

// jobToken is asked before each request.
func jobToken(getenv func(string) string, on Type) func() (string, error) {
	return func() (string, error) {
		for _, name := range tokenVariables[on] {
			if token := strings.TrimSpace(getenv(name)); token != "" {
				return token, nil
			}
		}
		return "", fmt.Errorf("no token: none of the environment variables %v is set", tokenVariables[on])
	}
}

func readActions(getenv func(string) string, is Type) (Job, error) {
	job := Job{Config: Config{Type: is, URL: getenv("GITHUB_SERVER_URL"), API: getenv("GITHUB_API_URL"), Project: getenv("GITHUB_REPOSITORY"), Token: jobToken(getenv, is)}}
	if run := getenv("GITHUB_RUN_ID"); run != "" {
		job.URL = fmt.Sprintf("%s/%s/actions/runs/%s", job.Config.URL, job.Project, run)
	}
	if err := areURLs(getenv, "GITHUB_SERVER_URL", "GITHUB_API_URL"); err != nil {
		return job, err
	}
	file := getenv("GITHUB_EVENT_PATH")
	if file == "" {
		return job, errors.New("GITHUB_EVENT_PATH is not set: it names the file with the event of the job")
	}
	content, err := smallfile.ReadUpTo(file, maxEvent)
	if err != nil {
		return job, fmt.Errorf("the event of the job, in GITHUB_EVENT_PATH: %w", err)
	}
	var event struct {
		Number      int
		PullRequest *struct {
			Number int
			Head   struct{ SHA config.Commit }
		} `json:"pull_request"`
		Run *struct {
			SHA config.Commit `json:"head_sha"`
		} `json:"workflow_run"`
	}
	if err := json.Unmarshal(content, &event); err != nil {
		return job, fmt.Errorf("%s, in GITHUB_EVENT_PATH: want the JSON object of an event, with its pull_request or workflow_run", file)
	}
	switch {
	case event.PullRequest != nil:
		job.Pull, job.Head = cmp.Or(event.PullRequest.Number, event.Number), event.PullRequest.Head.SHA
	case event.Run != nil:
		job.Head, job.Unnamed = event.Run.SHA, true
	}
	return job, nil
}

func readGitLab(getenv func(string) string) (Job, error) {
	job := Job{
		Config: Config{Type: GitLab, URL: getenv("CI_SERVER_URL"), API: getenv("CI_API_V4_URL"), Project: cmp.Or(getenv("CI_MERGE_REQUEST_PROJECT_PATH"), getenv("CI_PROJECT_PATH")), Token: jobToken(getenv, GitLab)},
		URL:    getenv("CI_JOB_URL"),
		// The source branch's commit; of a pipeline for the merged result, CI_COMMIT_SHA is another one.
		Head: config.Commit(cmp.Or(getenv("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA"), getenv("CI_COMMIT_SHA"))),
	}
	if err := areURLs(getenv, "CI_SERVER_URL", "CI_API_V4_URL"); err != nil {
		return job, err
	}
	if text := getenv("CI_MERGE_REQUEST_IID"); text != "" {
		number, err := strconv.Atoi(text)
		if err != nil {
			return job, fmt.Errorf("CI_MERGE_REQUEST_IID: %w", err)
		}
		job.Pull = number
	}
	return job, nil
}

// areURLs says which environment variable is no URL; nil: none. One that is not set is left to
// [New], which wants some of them.
func areURLs(getenv func(string) string, names ...string) error {
	for _, name := range names {
		if text := getenv(name); text != "" {
			if _, err := document.WebURL(text); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

// maxEvent is larger than any event that GitHub makes: 25 MiB.
const maxEvent = 32 << 20
