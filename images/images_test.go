package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// platforms are the platforms of the test. The first is the present one.
func platforms(t *testing.T) []platform {
	t.Helper()
	all := []platform{{"linux", "amd64"}, {"linux", "arm64"}}
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skipf("the commands of no image run on %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	if runtime.GOARCH == "arm64" {
		slices.Reverse(all)
	}
	return all
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	must(t, err)
	return text
}

// made builds everything for the platforms, and returns the folder and the output.
func made(t *testing.T, source string, all []platform) (folder, said string) {
	t.Helper()
	names := make([]string, 0, len(all))
	for _, p := range all {
		names = append(names, p.os+"/"+p.arch)
	}
	folder = filepath.Join(t.TempDir(), "out")
	var out strings.Builder
	must(t, run(t.Context(), []string{"--source", source, "--out", folder, "--platforms", strings.Join(names, ",")}, &out))
	return folder, out.String()
}

// A second build from another folder, with other settings of Go and other file times, has the
// same bytes. The commands in the image start.
func TestImages(t *testing.T) {
	all := platforms(t)
	first, said := made(t, "..", all)
	t.Run("twice", func(t *testing.T) {
		source := copied(t)
		for name, value := range map[string]string{
			"GOFLAGS": "-tags=other", "GOAMD64": "v3", "GOARM64": "v9.0", "CGO_ENABLED": "1", "GOOS": "plan9", "TZ": "Asia/Tokyo", "TMPDIR": t.TempDir(),
		} {
			t.Setenv(name, value)
		}
		second, again := made(t, source, all)
		if a, b := digestIn(t, said), digestIn(t, again); a != b {
			t.Errorf("digest %s, and built again %s", a, b)
		}
		if a, b := sums(t, first), sums(t, second); !reflect.DeepEqual(a, b) {
			t.Errorf("files\n%v, and built again\n%v", a, b)
		}
	})
	index := checkArchive(t, first, digestIn(t, said), len(all))
	for i, p := range all {
		t.Run(p.String(), func(t *testing.T) {
			checkPlatform(t, first, index.Manifests[i], p)
		})
	}
	t.Run("the commands start", func(t *testing.T) {
		files := layerOf(t, first, index.Manifests[0])
		for command, flag := range map[string]string{"agent": "--cluster", "habitat": "--habitat-files-image", "webhook": "--namespace"} {
			checkStarts(t, command, files[command], flag)
		}
	})
	t.Run("the plugin starts", func(t *testing.T) {
		checkStarts(t, plugin, read(t, first, plugin+"-"+all[0].String()), "--context")
	})
}

// sources are the sources of the commands.
var sources = []string{"go.mod", "go.sum", "cmd", "internal", "manifests", "pkg"}

// copied returns a copy of the sources elsewhere, with new file times.
func copied(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range sources {
		from, to := filepath.Join("..", name), filepath.Join(folder, name)
		if info, err := os.Stat(from); err == nil && info.IsDir() {
			must(t, os.CopyFS(to, os.DirFS(from)))
			continue
		}
		must(t, os.WriteFile(to, read(t, from), 0o600))
	}
	return folder
}

// digestIn returns the digest in the output.
func digestIn(t *testing.T, said string) string {
	t.Helper()
	digest := regexp.MustCompile(`@(sha256:[0-9a-f]{64}) `).FindStringSubmatch(said)
	if digest == nil {
		t.Fatalf("no digest in %q", said)
	}
	return digest[1]
}

// sums returns the checksums of all files in a folder.
func sums(t *testing.T, folder string) map[string]string {
	t.Helper()
	found := map[string]string{}
	names, err := filepath.Glob(filepath.Join(folder, "*"))
	must(t, err)
	for _, name := range names {
		found[filepath.Base(name)] = sumOf(read(t, name))
	}
	if len(found) == 0 {
		t.Fatal("nothing was built")
	}
	return found
}

// unpacked returns the headers of an archive, and the contents of its files.
func unpacked(t *testing.T, from io.Reader) (headers []*tar.Header, files map[string][]byte) {
	t.Helper()
	files = map[string][]byte{}
	for reader := tar.NewReader(from); ; {
		header, err := reader.Next()
		if err == io.EOF { //nolint:errorlint // as archive/tar has it
			return headers, files
		}
		must(t, err)
		text, err := io.ReadAll(reader)
		must(t, err)
		headers = append(headers, header)
		if header.Typeflag == tar.TypeReg {
			files[header.Name] = text
		}
	}
}

func unzipped(t *testing.T, from io.Reader) io.Reader {
	t.Helper()
	reader, err := gzip.NewReader(from)
	must(t, err)
	return reader
}

// checkHeaders checks that the headers do not show who made the archive, and when.
func checkHeaders(t *testing.T, headers []*tar.Header) {
	t.Helper()
	for _, h := range headers {
		if !h.ModTime.Equal(time.Unix(0, 0)) || h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" || len(h.PAXRecords) > 0 || h.Mode&0o022 != 0 {
			t.Errorf("%s tells of its maker, or may be written: %+v", h.Name, h)
		}
	}
}

func archiveIn(t *testing.T, folder string) map[string][]byte {
	t.Helper()
	headers, files := unpacked(t, bytes.NewReader(read(t, folder, archive)))
	checkHeaders(t, headers)
	return files
}

// blob returns the content of a digest, and checks the digest.
func blob(t *testing.T, files map[string][]byte, digest v1.Hash) []byte {
	t.Helper()
	text, ok := files["blobs/sha256/"+digest.Hex]
	if !ok || sumOf(text) != digest.Hex {
		t.Fatalf("the archive has no blob of digest %s", digest)
	}
	return text
}

func decoded[T any](t *testing.T, text []byte) T {
	t.Helper()
	var value T
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return value
}

// checkArchive reads the layout as a program that loads it, by the name in the manifests.
func checkArchive(t *testing.T, folder, digest string, platforms int) v1.IndexManifest {
	t.Helper()
	files := archiveIn(t, folder)
	if version := decoded[map[string]string](t, files["oci-layout"])["imageLayoutVersion"]; version != "1.0.0" {
		t.Errorf("layout version %q", version)
	}
	entry := decoded[v1.IndexManifest](t, files["index.json"])
	if len(entry.Manifests) != 1 || entry.Manifests[0].Digest.String() != digest {
		t.Fatalf("index.json has %+v, want the one that was said, %s", entry.Manifests, digest)
	}
	const name = "docker.io/krake-observer/krake-observer:latest"
	if got := entry.Manifests[0].Annotations["io.containerd.image.name"]; got != name {
		t.Errorf("its name is %q, want %q", got, name)
	}
	index := decoded[v1.IndexManifest](t, blob(t, files, entry.Manifests[0].Digest))
	if len(index.Manifests) != platforms {
		t.Fatalf("the index has %d images, want %d", len(index.Manifests), platforms)
	}
	return index
}

// layerOf returns the files of the single layer of an image.
func layerOf(t *testing.T, folder string, descriptor v1.Descriptor) map[string][]byte {
	t.Helper()
	files := archiveIn(t, folder)
	manifest := decoded[v1.Manifest](t, blob(t, files, descriptor.Digest))
	if len(manifest.Layers) != 1 {
		t.Fatalf("%d layers", len(manifest.Layers))
	}
	headers, content := unpacked(t, unzipped(t, bytes.NewReader(blob(t, files, manifest.Layers[0].Digest))))
	checkHeaders(t, headers)
	return content
}

func checkPlatform(t *testing.T, folder string, descriptor v1.Descriptor, p platform) {
	t.Helper()
	if descriptor.Platform == nil || descriptor.Platform.OS != p.os || descriptor.Platform.Architecture != p.arch {
		t.Fatalf("it is for %v", descriptor.Platform)
	}
	files := archiveIn(t, folder)
	manifest := decoded[v1.Manifest](t, blob(t, files, descriptor.Digest))
	config := decoded[v1.ConfigFile](t, blob(t, files, manifest.Config.Digest))
	if config.OS != p.os || config.Architecture != p.arch || config.Config.User != "65532:65532" || config.RootFS.Type != "layers" || len(config.RootFS.DiffIDs) != 1 {
		t.Errorf("config %+v", config)
	}
	content := layerOf(t, folder, descriptor)
	if names := slices.Sorted(maps.Keys(content)); !slices.Equal(names, []string{"agent", "etc/ssl/certs/ca-certificates.crt", "habitat", "webhook"}) {
		t.Errorf("the image has %v", names)
	}
	machine := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[p.arch]
	for _, command := range inImage {
		program, err := elf.NewFile(bytes.NewReader(content[command]))
		must(t, err)
		interpreted := slices.ContainsFunc(program.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
		if program.Machine != machine || interpreted {
			t.Errorf("%s is for %s, and wants a loader that the image does not have: %t", command, program.Machine, interpreted)
		}
	}
	checkBill(t, folder, descriptor, p, content)
}

// checkBill compares the bill of materials with what the linker has written into the commands.
func checkBill(t *testing.T, folder string, descriptor v1.Descriptor, p platform, content map[string][]byte) {
	t.Helper()
	b := decoded[bill](t, read(t, folder, "krake-observer-"+p.String()+".spdx.json"))
	ids := identified(t, b)
	if ids[imageID].Version != descriptor.Digest.String() {
		t.Errorf("it is of image %s, want %s", ids[imageID].Version, descriptor.Digest)
	}
	want := map[string]bool{}
	for _, command := range inImage {
		if sums := ids[idOf(command)].Checksums; len(sums) != 1 || sums[0].Value != sumOf(content[command]) {
			t.Errorf("%s has checksums %v", command, sums)
		}
		info, err := buildinfo.Read(bytes.NewReader(content[command]))
		must(t, err)
		for _, module := range info.Deps {
			want[command+" "+module.Path+"@"+module.Version] = true
		}
	}
	if got := dependencies(b, ids); len(want) < 20 || !reflect.DeepEqual(got, want) {
		t.Errorf("modules %v, want %v", got, want)
	}
	if !slices.ContainsFunc(b.Packages, func(one packageInfo) bool { return strings.HasSuffix(one.Name, "x509roots/fallback") }) {
		t.Error("it says nothing of where the authorities are from")
	}
}

// identified returns the packages by their identifiers. It checks that each identifier is
// legal and unique, and that all related packages exist.
func identified(t *testing.T, b bill) map[string]packageInfo {
	t.Helper()
	ids := map[string]packageInfo{}
	for _, one := range b.Packages {
		if _, twice := ids[one.ID]; twice || !regexp.MustCompile(`^SPDXRef-[A-Za-z0-9.-]+$`).MatchString(one.ID) {
			t.Errorf("identifier %q is not legal, or there twice", one.ID)
		}
		ids[one.ID] = one
	}
	for _, r := range b.Relationships {
		if _, ok := ids[r.To]; !ok || r.From != documentID && ids[r.From].ID == "" {
			t.Errorf("%+v is of something that there is not", r)
		}
	}
	return ids
}

// dependencies returns the modules of the commands, such as "agent k8s.io/api@v0.37.2".
func dependencies(b bill, ids map[string]packageInfo) map[string]bool {
	found := map[string]bool{}
	for _, r := range b.Relationships {
		if r.Type == "DEPENDS_ON" && ids[r.To].Name != "stdlib" {
			found[ids[r.From].Name+" "+ids[r.To].Name+"@"+ids[r.To].Version] = true
		}
	}
	return found
}

func executable(t *testing.T, name string, program []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(file, program, 0o700))
	return file
}

// checkStarts runs a command without an environment, as in the image.
func checkStarts(t *testing.T, name string, program []byte, says string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), executable(t, name, program), "--help")
	command.Env = []string{"PATH=/"}
	text, err := command.CombinedOutput()
	if err != nil || !strings.Contains(string(text), says) {
		t.Errorf("%s --help: %v, and says\n%s\nwant %s", name, err, text, says)
	}
}

func TestParse(t *testing.T) {
	o, err := parse([]string{"--platforms", "linux/arm64, linux/amd64", "--name", "localhost:5000/team/krake:v1"}, "1700000000")
	must(t, err)
	want := options{
		source: "..", out: "../bin", name: "localhost:5000/team/krake:v1",
		platforms: []platform{{"linux", "arm64"}, {"linux", "amd64"}}, plugins: pluginPlatforms, created: time.Unix(1700000000, 0).UTC(),
	}
	if !reflect.DeepEqual(o, want) {
		t.Errorf("options %+v, want %+v", o, want)
	}
	for _, c := range []struct {
		why, arguments, epoch, want string
	}{
		{"a platform that no command was tried on", "--platforms windows/amd64", "", "--platforms: \"windows/amd64\" has to be"},
		{"one platform twice", "--platforms linux/amd64,linux/amd64", "", "named twice"},
		{"a name without a tag", "--name docker.io/krake-observer/krake-observer", "", "--name"},
		{"a name with a digest", "--name docker.io/krake@sha256:00", "", "--name"},
		{"a release that is no version", "--release latest", "", "--release"},
		{"a plugin for what there is not", "--plugins plan9/386", "", "--plugins"},
		{"an argument", "all", "", "no arguments"},
		{"a time that is none", "", "yesterday", "SOURCE_DATE_EPOCH"},
	} {
		if _, err := parse(strings.Fields(c.arguments), c.epoch); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.why, err, c.want)
		}
	}
}
