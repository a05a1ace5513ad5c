// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// writeSBOM writes which modules a binary was built of, as Go wrote them into it. Go does not
// know the version of a checkout.
func writeSBOM(w io.Writer, version, binary string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("%s: %w", binary, err)
	}
	bom := cyclonedx.NewBOM()
	main := component(cyclonedx.ComponentTypeApplication, &info.Main)
	main.Version = version
	main.PackageURL, main.BOMRef = purl(info.Main.Path, version), purl(info.Main.Path, version)
	bom.Metadata = &cyclonedx.Metadata{Component: &main, Properties: &[]cyclonedx.Property{
		{Name: "go:os", Value: setting(info, "GOOS")}, {Name: "go:arch", Value: setting(info, "GOARCH")}}}
	components := []cyclonedx.Component{component(cyclonedx.ComponentTypeLibrary, &debug.Module{Path: "std", Version: info.GoVersion})}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		components = append(components, component(cyclonedx.ComponentTypeLibrary, module))
	}
	slices.SortFunc(components, func(a, b cyclonedx.Component) int { return cmp.Compare(a.BOMRef, b.BOMRef) })
	bom.Components = &components
	encoder := cyclonedx.NewBOMEncoder(w, cyclonedx.BOMFileFormatJSON)
	encoder.SetPretty(true)
	return encoder.Encode(bom)
}

func component(kind cyclonedx.ComponentType, m *debug.Module) cyclonedx.Component {
	c := cyclonedx.Component{Type: kind, Name: m.Path, Version: m.Version, PackageURL: purl(m.Path, m.Version), BOMRef: purl(m.Path, m.Version)}
	// Go's sum is the SHA-256 of a list of the module's files and their sums.
	if sum, ok := strings.CutPrefix(m.Sum, "h1:"); ok {
		if raw, err := base64.StdEncoding.DecodeString(sum); err == nil {
			c.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(raw)}}
		}
	}
	return c
}

// purl is a module as package URLs have it.
func purl(path, version string) string {
	parts := strings.Split(path, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return "pkg:golang/" + strings.Join(parts, "/") + "@" + url.PathEscape(version)
}

// setting is one of the build's settings.
func setting(info *buildinfo.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}
