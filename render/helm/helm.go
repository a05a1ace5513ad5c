// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package helm is what the compiler and those who render Helm charts say to each other:
// a chart with its values, and the objects of it. It finds the files of charts in a tree,
// and tells what hooks of Helm are to swell. It renders nothing.
package helm

// Request asks for the objects of a chart.
type Request struct {
	Chart              Chart
	Release, Namespace string
	// Files of values, later ones win. Values win over all of them.
	Files  []File
	Values []byte // a mapping in JSON
	// Kubernetes is a version like 1.36.
	Kubernetes string
	// APIVersions are what charts ask for with .Capabilities.APIVersions.Has, sorted.
	APIVersions []string
	// Tenant is whose unit has the chart. What it renders to does not depend on it.
	Tenant string
}

// Chart is the files of a chart.
type Chart struct {
	// Hash is the address of the content.
	Hash string
	// Files of a folder, by their paths from there; of an archive there is one.
	Files   []File
	Archive bool
}

// File is a file of a chart, or of values.
type File struct {
	Name    string
	Content []byte
}

// Answer is what a chart renders to, or what is wrong with it.
type Answer struct {
	Objects  []Object
	Notes    []Finding
	Problems []Finding
}

// Retry says whether it may be another one another time.
func (a *Answer) Retry() bool {
	for _, p := range a.Problems {
		if p.Retry {
			return true
		}
	}
	return false
}

// Object is one document of the chart's output.
type Object struct {
	// File of the chart that it is from: templates/service.yaml.
	File string
	// JSON is the object.
	JSON []byte
	// Text is the rendered document, and Line the line that it begins at in the output of
	// its file, from 1.
	Text string
	Line int
	// Item tells which item of a list in Text the object is, from 1; zero where Text is the
	// object.
	Item int
	// OfCRDs is set where it is from the folder crds, in which Helm looks for no hooks.
	OfCRDs bool
}

// Finding is something that is wrong with a chart or its values, or to be known.
type Finding struct {
	// File and Line in the chart; empty and zero where that is not known.
	File string
	Line int
	// Values are paths of values that it is about, or that would mend it: auth.password.
	Values []string
	// ValuesFile is the file of values that it is about; empty for none.
	ValuesFile string
	Text       string
	// Retry is set when it may not be found another time: the machine was busy.
	Retry bool
}
