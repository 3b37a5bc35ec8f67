package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// license is the license of the project.
const license = "Apache-2.0"

// bill is a bill of materials, in the words of SPDX 2.3.
type bill struct {
	Version       string         `json:"spdxVersion"`
	DataLicense   string         `json:"dataLicense"`
	ID            string         `json:"SPDXID"`
	Name          string         `json:"name"`
	Namespace     string         `json:"documentNamespace"`
	Creation      creation       `json:"creationInfo"`
	Packages      []packageInfo  `json:"packages"`
	Relationships []relationship `json:"relationships"`
}

type creation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type packageInfo struct {
	ID        string      `json:"SPDXID"`
	Name      string      `json:"name"`
	Version   string      `json:"versionInfo,omitempty"`
	Purpose   string      `json:"primaryPackagePurpose"`
	Location  string      `json:"downloadLocation"`
	Analyzed  bool        `json:"filesAnalyzed"`
	License   string      `json:"licenseDeclared"`
	Checksums []checksum  `json:"checksums,omitempty"`
	Comment   string      `json:"comment,omitempty"`
	Refs      []reference `json:"externalRefs,omitempty"`
}

type checksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type reference struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type relationship struct {
	From string `json:"spdxElementId"`
	Type string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

const (
	documentID = "SPDXRef-DOCUMENT"
	imageID    = "SPDXRef-image"
	noLicense  = "NOASSERTION"
	nowhere    = "NOASSERTION"
)

// billOf returns the bill of materials of an image, from what the Go linker has written
// into the commands: modules and versions, and no licenses.
func billOf(folder, digest string, p platform, created time.Time) ([]byte, error) {
	b := bill{
		Version: "SPDX-2.3", DataLicense: "CC0-1.0", ID: documentID, Name: "krake-observer-" + p.String(),
		Namespace: "https://krake.dev/spdx/krake-observer-" + p.String() + "-" + strings.TrimPrefix(digest, "sha256:"),
		Creation:  creation{created.Format(time.RFC3339), []string{"Tool: github.com/krake-observer/krake-observer/images"}},
	}
	b.Packages = append(b.Packages, packageInfo{
		ID: imageID, Name: "krake-observer", Version: digest, Purpose: "CONTAINER", Location: nowhere, License: license,
	})
	b.relate(documentID, "DESCRIBES", imageID)
	for _, command := range inImage {
		if err := b.addCommand(filepath.Join(folder, command)); err != nil {
			return nil, err
		}
	}
	b.addAuthorities()
	text, err := json.MarshalIndent(b, "", "  ")
	return append(text, '\n'), err
}

func (b *bill) relate(from, how, to string) {
	b.Relationships = append(b.Relationships, relationship{from, how, to})
}

// addCommand adds a command and its modules.
func (b *bill) addCommand(file string) error {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	name := filepath.Base(file)
	command := packageInfo{
		ID: idOf(name), Name: name, Purpose: "APPLICATION", Location: nowhere, License: license,
		Checksums: []checksum{{"SHA256", sumOf(content)}},
	}
	b.add(command)
	b.relate(imageID, "CONTAINS", command.ID)
	library := moduleOf(&debug.Module{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")})
	b.add(library)
	b.relate(command.ID, "DEPENDS_ON", library.ID)
	for _, dependency := range info.Deps {
		module := moduleOf(dependency)
		b.add(module)
		b.relate(command.ID, "DEPENDS_ON", module.ID)
	}
	return nil
}

// addAuthorities adds the module whose certificates are in the image. It is this
// program's, and not the commands'.
func (b *bill) addAuthorities() {
	const path = "golang.org/x/crypto/x509roots/fallback"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return
	}
	for _, dependency := range info.Deps {
		if dependency.Path == path {
			module := moduleOf(dependency)
			b.add(module)
			b.relate(imageID, "CONTAINS", module.ID)
		}
	}
}

// add adds a package once.
func (b *bill) add(one packageInfo) {
	if !slices.ContainsFunc(b.Packages, func(other packageInfo) bool { return other.ID == one.ID }) {
		b.Packages = append(b.Packages, one)
	}
}

// moduleOf describes a module as it was linked: that which replaces another one, if so.
func moduleOf(module *debug.Module) packageInfo {
	if module.Replace != nil {
		module = module.Replace
	}
	one := packageInfo{
		ID: idOf(module.Path + "@" + module.Version), Name: module.Path, Version: module.Version, Purpose: "LIBRARY",
		Location: nowhere, License: noLicense,
		Refs: []reference{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + module.Path + "@" + strings.ReplaceAll(module.Version, "+", "%2B")}},
	}
	if module.Sum != "" {
		one.Comment = "go.sum " + module.Sum
	}
	return one
}

// isNoID finds what an identifier may not have.
var isNoID = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// idOf returns an identifier. It leaves out illegal characters, and adds a sum so that two
// names have different identifiers.
func idOf(name string) string {
	return "SPDXRef-" + isNoID.ReplaceAllString(name, "-") + "-" + sumOf([]byte(name))[:8]
}

// sumOf is the SHA-256 of a content.
func sumOf(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content)) }
