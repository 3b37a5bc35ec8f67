package habitat_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/habitat"
	"github.com/krake-observer/krake-observer/test/check"
)

func TestParse(t *testing.T) {
	want := habitat.Habitat{
		NamespacedName: types.NamespacedName{Namespace: "shop", Name: "greeter"},
		UID:            "u1",
		Generation:     3,
		CustomVersion:  "v1beta2",
		Spec: habitat.Spec{
			Count: 3,
			Image: "registry.test/hab/greeter:1",
			Env: []any{
				map[string]any{"name": "HAB_GREETER", "value": `{"port":7001}`},
				map[string]any{"name": "NODE", "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": "spec.nodeName"}}},
			},
			Storage:        &habitat.Storage{Size: "10Gi", MountPath: "/data", StorageClass: "fast"},
			UpdateStrategy: "OnDelete",
			Service: habitat.Service{ //nolint:gosec // names of Secrets, of which none is secret
				Name: "greeter", Topology: "leader", Group: "blue", Channel: "unstable",
				ConfigSecret: "greeter-config", FilesSecret: "greeter-files", RingSecret: "inner-ring-20240131235959",
				Binds: []habitat.Bind{{Name: "store", Service: "pgsql", Group: "default"}, {Name: "cache", Service: "valkey", Group: "blue"}},
			},
		},
	}
	check.Equal(t, "v1beta2", want, parse(t, decode(t, greeter)))

	want = habitat.Habitat{
		NamespacedName: types.NamespacedName{Namespace: "shop", Name: "old"},
		CustomVersion:  "v1beta1",
		Spec: habitat.Spec{
			Count: 2,
			Image: "registry.test/hab/old:1",
			Env:   []any{map[string]any{"name": "HAB_OLD", "value": "x"}},
			Service: habitat.Service{
				Name: "old", Topology: "standalone", Group: "blue", ConfigSecret: "old-config", RingSecret: "inner-ring-20240131235959",
				Binds: []habitat.Bind{{Name: "store", Service: "pgsql", Group: "default"}},
			},
		},
	}
	check.Equal(t, "v1beta1", want, parse(t, decode(t, old)))
	check.Equal(t, "v1beta1 that nobody says", want, parse(t, set(t, decode(t, old), "customVersion", gone{})))
	check.Equal(t, "v1beta1 as an empty text", want, parse(t, set(t, decode(t, old), "customVersion", "")))
}

// verdict is the expected result for a Habitat with one changed value.
type verdict struct {
	why   string
	path  string
	value any
	// want is empty for a valid Habitat.
	want []string
}

func (v verdict) check(t *testing.T, object map[string]any) {
	t.Helper()
	_, mistakes := habitat.Parse(set(t, object, v.path, v.value))
	check.Equal(t, fmt.Sprintf("%s = %v", v.path, v.value), v.want, texts(mistakes))
}

func checkAll(t *testing.T, object map[string]any, verdicts []verdict) {
	t.Helper()
	for _, v := range verdicts {
		t.Run(v.why, func(t *testing.T) { v.check(t, object) })
	}
}

func said(mistakes ...string) []string { return mistakes }

const (
	topologyMistake = `it has to be standalone or leader`
	ringMistake     = `it has to be the name of the ring, of small letters, digits and dashes, a dash, and its revision of 14 digits, as in my-ring-20240131235959; leave the field out if there is none`
	secretMistake   = `it has to be the name of a Secret, of small letters, digits, dashes and dots; leave the field out if there is none`
	argumentMistake = `it has to be a text without white space that does not begin with a dash; leave the field out for the supervisor's default`
	imageMistake    = `the image of the container, without white space`
	serviceMistake  = `the name of the service, of letters, digits, '_', '.' and '-', and neither . nor ..`
	sizeMistake     = `a quantity of bytes of more than 0, and at most 4Ei, as 10Gi`
	mountMistake    = `an absolute path below /, without ':', '//' and parts that are . or .., where nothing else is mounted`
	bindMistake     = `the name of the bind, without white space and ':', that does not begin with a dash`
	targetMistake   = `the name of a service, without white space, ':' and '.'`
	groupMistake    = `the group of the service, without white space, ':' and '.'`
	nameMistake     = `it has to be a name of at most 52 small letters, digits and dashes, that begins and ends with a letter or a digit: the Pods have it in a label, and more behind it`
)

// The measured behaviour of the original operator, and the behaviour here. The original
// accepted several wrong inputs, and reported them later or never.
func TestWhatTheOriginalWasMeasuredWith(t *testing.T) {
	checkAll(t, decode(t, greeter), []verdict{
		{"a version that nobody knows", "customVersion", "v1beta3", said(`customVersion: Unsupported value: "v1beta3": supported values: "v1beta1", "v1beta2"`)},
		{"an absent version is v1beta1, which has other fields", "customVersion", gone{}, said(`spec.v1beta2: Forbidden: customVersion v1beta1, which is also that of a Habitat without one, has its fields directly below spec: set customVersion: v1beta2`)},
		{"so is v1beta1", "customVersion", "v1beta1", said(`spec.v1beta2: Forbidden: customVersion v1beta1, which is also that of a Habitat without one, has its fields directly below spec: set customVersion: v1beta2`)},
		{"nothing in spec", "spec.v1beta2", gone{}, said(`spec.v1beta2: Required value: customVersion v1beta2 has its fields there`)},
		{"no spec", "spec", gone{}, said(`spec.v1beta2: Required value: customVersion v1beta2 has its fields there`)},
		{"no topology", "spec.v1beta2.service.topology", gone{}, said(`spec.v1beta2.service.topology: Required value: standalone or leader`)},
		{"another topology", "spec.v1beta2.service.topology", "ring", said(`spec.v1beta2.service.topology: Invalid value: "ring": ` + topologyMistake)},
		{"case matters", "spec.v1beta2.service.topology", "Leader", said(`spec.v1beta2.service.topology: Invalid value: "Leader": ` + topologyMistake)},
		{"a ring without 14 digits", "spec.v1beta2.service.ringSecretName", "abc-123", said(`spec.v1beta2.service.ringSecretName: Invalid value: "abc-123": ` + ringMistake)},
		{"a ring without revision", "spec.v1beta2.service.ringSecretName", "ringkey", said(`spec.v1beta2.service.ringSecretName: Invalid value: "ringkey": ` + ringMistake)},
		{"a revision of 15 digits", "spec.v1beta2.service.ringSecretName", "a-202301010000000", said(`spec.v1beta2.service.ringSecretName: Invalid value: "a-202301010000000": ` + ringMistake)},
		{"a ring with a dot", "spec.v1beta2.service.ringSecretName", "a.b-20230101000000", said(`spec.v1beta2.service.ringSecretName: Invalid value: "a.b-20230101000000": ` + ringMistake)},
		{"an empty ring", "spec.v1beta2.service.ringSecretName", "", said(`spec.v1beta2.service.ringSecretName: Invalid value: "": ` + ringMistake)},
		{"a ring with dashes", "spec.v1beta2.service.ringSecretName", "a-b-c-20230101000000", nil},
		{"no Secret can have an underscore", "spec.v1beta2.service.ringSecretName", "a_b-20230101000000", said(`spec.v1beta2.service.ringSecretName: Invalid value: "a_b-20230101000000": ` + ringMistake)},
		{"a size that is none", "spec.v1beta2.persistentStorage.size", "10 gigs", said(`spec.v1beta2.persistentStorage.size: Invalid value: "10 gigs": it has to be ` + sizeMistake)},
		{"less than no Pods", "spec.v1beta2.count", int64(-1), said(`spec.v1beta2.count: Invalid value: -1: it has to be at least 0, and at most 2147483647`)},
		{"no image", "spec.v1beta2.image", gone{}, said(`spec.v1beta2.image: Required value: ` + imageMistake)},
		{"no name of the service", "spec.v1beta2.service.name", gone{}, said(`spec.v1beta2.service.name: Required value: ` + serviceMistake)},
		{"a bind without group", "spec.v1beta2.service.bind.0.group", gone{}, said(`spec.v1beta2.service.bind[0].group: Required value: ` + groupMistake)},
		{"an unknown field", "spec.v1beta2.replicas", int64(1), said(`spec.v1beta2.replicas: Forbidden: no such field is known: there are count, env, image, persistentStorage, service, updateStrategy`)},
		{"an empty group", "spec.v1beta2.service.group", "", said(`spec.v1beta2.service.group: Invalid value: "": ` + argumentMistake)},
		{"a leader of one Pod", "spec.v1beta2.count", int64(1), nil},
		{"a count that is no number", "spec.v1beta2.count", "two", said(`spec.v1beta2.count: Invalid value: it is a text, and has to be an integer`)},
		{"a ring that is too long for a volume", "spec.v1beta2.service.ringSecretName", strings.Repeat("a", 49) + "-20230101000000", said(
			`spec.v1beta2.service.ringSecretName: Invalid value: "` + strings.Repeat("a", 49) + `-20230101000000": it has 64 characters; the maximum is 63`)},
		{"a ring that is just not too long", "spec.v1beta2.service.ringSecretName", strings.Repeat("a", 48) + "-20230101000000", nil},
		{"a relative path", "spec.v1beta2.persistentStorage.mountPath", "data", said(`spec.v1beta2.persistentStorage.mountPath: Invalid value: "data": it has to be ` + mountMistake)},
		{"an empty channel", "spec.v1beta2.service.channel", "", said(`spec.v1beta2.service.channel: Invalid value: "": ` + argumentMistake)},
		{"an empty image", "spec.v1beta2.image", "", said(`spec.v1beta2.image: Required value: ` + imageMistake)},
		{"an empty name of the service", "spec.v1beta2.service.name", "", said(`spec.v1beta2.service.name: Required value: ` + serviceMistake)},
	})
}

func TestParseV1beta2(t *testing.T) {
	checkAll(t, decode(t, greeter), []verdict{
		{"all fields are right", "kind", "Habitat", nil},
		{"no name", "metadata.name", gone{}, said(`metadata.name: Required value: ` + strings.TrimPrefix(nameMistake, "it has to be "))},
		{"a name that is no label", "metadata.name", "a.b", said(`metadata.name: Invalid value: "a.b": ` + nameMistake)},
		{"the longest name", "metadata.name", strings.Repeat("a", 52), nil},
		{"a longer name", "metadata.name", strings.Repeat("a", 53), said(`metadata.name: Invalid value: "` + strings.Repeat("a", 53) + `": it has 53 characters; the maximum is 52`)},
		{"the name of the peers", "metadata.name", "peers", said(`metadata.name: Invalid value: "peers": the ConfigMap habitat-peers is that of the peer file: choose another name`)},
		{"metadata that are none", "metadata", "x", said(`metadata: Invalid value: it is a text, and has to be an object`, `metadata.name: Required value: `+strings.TrimPrefix(nameMistake, "it has to be "))},
		{"an unknown field at the top", "specs", int64(1), said(`specs: Forbidden: no such field is known: there are apiVersion, customVersion, kind, metadata, spec, status`)},
		{"an unknown field of two lines", "spec.v1beta2.a\nb", int64(1), said(`spec.v1beta2.a\nb: Forbidden: no such field is known: there are count, env, image, persistentStorage, service, updateStrategy`)},
		{"an unknown field of spec", "spec.v1beta3", map[string]any{}, said(`spec.v1beta3: Forbidden: no such field is known: there are v1beta2`)},
		{"a field in the wrong place", "spec.count", int64(1), said(`spec.count: Forbidden: customVersion v1beta2 has it below spec.v1beta2: move it there`)},
		{"a version that is no text", "customVersion", int64(2), said(`customVersion: Unsupported value: "2": supported values: "v1beta1", "v1beta2"`)},
		{"fields that are none", "spec.v1beta2", []any{}, said(`spec.v1beta2: Invalid value: it is a list, and has to be an object`)},
		{"no count is no Pods", "spec.v1beta2.count", gone{}, nil},
		{"no Pods", "spec.v1beta2.count", int64(0), nil},
		{"the most Pods", "spec.v1beta2.count", int64(math.MaxInt32), nil},
		{"more Pods", "spec.v1beta2.count", int64(math.MaxInt32) + 1, said(`spec.v1beta2.count: Invalid value: 2147483648: it has to be at least 0, and at most 2147483647`)},
		{"many more Pods", "spec.v1beta2.count", 1e300, said(`spec.v1beta2.count: Invalid value: 1e+300: it has to be at least 0, and at most 2147483647`)},
		{"less than 0 by far", "spec.v1beta2.count", -1e300, said(`spec.v1beta2.count: Invalid value: -1e+300: it has to be at least 0, and at most 2147483647`)},
		{"2.0 is an integer", "spec.v1beta2.count", 2.0, nil},
		{"2.5 is none", "spec.v1beta2.count", 2.5, said(`spec.v1beta2.count: Invalid value: it is a number, and has to be an integer`)},
		{"an image with a blank", "spec.v1beta2.image", "a b", said(`spec.v1beta2.image: Invalid value: "a b": it has to be ` + imageMistake)},
		{"an image with a blank of another alphabet", "spec.v1beta2.image", "a\u00a0", said(`spec.v1beta2.image: Invalid value: "a\u00a0": it has to be ` + imageMistake)},
		{"the longest image", "spec.v1beta2.image", strings.Repeat("é", 1024), nil},
		{"a longer image", "spec.v1beta2.image", strings.Repeat("é", 1025), said(`spec.v1beta2.image: Invalid value: "` + strings.Repeat("é", 32) + `...": it has 1025 characters; the maximum is 1024`)},
		{"an image that is a number", "spec.v1beta2.image", int64(1), said(`spec.v1beta2.image: Invalid value: it is a number, and has to be a text`)},
		{"another strategy", "spec.v1beta2.updateStrategy", "Recreate", said(`spec.v1beta2.updateStrategy: Invalid value: "Recreate": it has to be RollingUpdate or OnDelete`)},
		{"one by one", "spec.v1beta2.updateStrategy", "RollingUpdate", nil},
		{"no strategy", "spec.v1beta2.updateStrategy", gone{}, nil},
		{"OnDelete is for leaders", "spec.v1beta2.service.topology", "standalone", said(`spec.v1beta2.updateStrategy: Invalid value: "OnDelete": only topology leader can have it, whose Pods elect a new leader together: leave it out`)},
		{"no service", "spec.v1beta2.service", gone{}, said(`spec.v1beta2.service: Required value: the service, with name and topology`)},
		{"an unknown field of the service", "spec.v1beta2.service.binds", []any{}, said(`spec.v1beta2.service.binds: Forbidden: no such field is known: there are bind, channel, configSecretName, filesSecretName, group, name, ringSecretName, topology`)},
		{"a name that would leave its folder", "spec.v1beta2.service.name", "..", said(`spec.v1beta2.service.name: Invalid value: "..": it has to be ` + serviceMistake)},
		{"a name that a shell would run", "spec.v1beta2.service.name", "a;reboot", said(`spec.v1beta2.service.name: Invalid value: "a;reboot": it has to be ` + serviceMistake)},
		{"a name of two lines", "spec.v1beta2.service.name", "a\n", said(`spec.v1beta2.service.name: Invalid value: "a\n": it has to be ` + serviceMistake)},
		{"a group that would be a flag", "spec.v1beta2.service.group", "-blue", said(`spec.v1beta2.service.group: Invalid value: "-blue": ` + argumentMistake)},
		{"a group of two words", "spec.v1beta2.service.group", "a b", said(`spec.v1beta2.service.group: Invalid value: "a b": ` + argumentMistake)},
		{"a channel that would be a flag", "spec.v1beta2.service.channel", "--x", said(`spec.v1beta2.service.channel: Invalid value: "--x": ` + argumentMistake)},
		{"a Secret that there cannot be", "spec.v1beta2.service.configSecretName", "a_b", said(`spec.v1beta2.service.configSecretName: Invalid value: "a_b": ` + secretMistake)},
		{"an empty name of a Secret", "spec.v1beta2.service.configSecretName", "", said(`spec.v1beta2.service.configSecretName: Invalid value: "": ` + secretMistake)},
		{"the same for files", "spec.v1beta2.service.filesSecretName", "A", said(`spec.v1beta2.service.filesSecretName: Invalid value: "A": ` + secretMistake)},
		{"a ring whose name ends with a dash", "spec.v1beta2.service.ringSecretName", "a--20230101000000", said(`spec.v1beta2.service.ringSecretName: Invalid value: "a--20230101000000": ` + ringMistake)},
		{"binds that are none", "spec.v1beta2.service.bind", "a:b.c", said(`spec.v1beta2.service.bind: Invalid value: it is a text, and has to be a list`)},
		{"a bind that is none", "spec.v1beta2.service.bind.0", "a:b.c", said(`spec.v1beta2.service.bind[0]: Invalid value: it is a text, and has to be an object`)},
		{"a bind that is null", "spec.v1beta2.service.bind.0", nil, said(`spec.v1beta2.service.bind[0]: Invalid value: it is null, and has to be an object`)},
		{"a bind without anything", "spec.v1beta2.service.bind.0", map[string]any{"name": ""}, said(
			`spec.v1beta2.service.bind[0].name: Required value: `+bindMistake,
			`spec.v1beta2.service.bind[0].service: Required value: `+targetMistake,
			`spec.v1beta2.service.bind[0].group: Required value: `+groupMistake)},
		{"a bind that would be a flag", "spec.v1beta2.service.bind.0.name", "-x", said(`spec.v1beta2.service.bind[0].name: Invalid value: "-x": it has to be ` + bindMistake)},
		{"a bind with a colon", "spec.v1beta2.service.bind.0.name", "a:b", said(`spec.v1beta2.service.bind[0].name: Invalid value: "a:b": it has to be ` + bindMistake)},
		{"a service with a dot", "spec.v1beta2.service.bind.0.service", "a.b", said(`spec.v1beta2.service.bind[0].service: Invalid value: "a.b": it has to be ` + targetMistake)},
		{"a group with a blank", "spec.v1beta2.service.bind.0.group", "a b", said(`spec.v1beta2.service.bind[0].group: Invalid value: "a b": it has to be ` + groupMistake)},
		{"two binds of one name", "spec.v1beta2.service.bind.1.name", "store", said(`spec.v1beta2.service.bind[1].name: Invalid value: "store": bind[0] has the same name: names of binds have to differ`)},
		{"an unknown field of a bind", "spec.v1beta2.service.bind.1.port", int64(1), said(`spec.v1beta2.service.bind[1].port: Forbidden: no such field is known: there are group, name, service`)},
		{"no null is a mistake", "spec.v1beta2.replicas", nil, nil},
	})
}

func TestParseStorage(t *testing.T) {
	const at = "spec.v1beta2.persistentStorage"
	mounted := func(path string) []string {
		return said(fmt.Sprintf("%s.mountPath: Invalid value: %q: it has to be %s", at, path, mountMistake))
	}
	sized := func(size string) []string {
		return said(fmt.Sprintf("%s.size: Invalid value: %q: it has to be %s", at, size, sizeMistake))
	}
	checkAll(t, decode(t, greeter), []verdict{
		{"no claim", at, gone{}, nil},
		{"a claim without anything", at, map[string]any{}, said(at+".mountPath: Required value: "+mountMistake, at+".size: Required value: "+sizeMistake)},
		{"a claim that is none", at, "10Gi", said(at + ": Invalid value: it is a text, and has to be an object")},
		{"an unknown field", at + ".accessModes", []any{}, said(at + ".accessModes: Forbidden: no such field is known: there are mountPath, size, storageClassName")},
		{"no class", at + ".storageClassName", gone{}, nil},
		{"an empty class", at + ".storageClassName", "", nil},
		{"a class that there cannot be", at + ".storageClassName", "Fast", said(at + `.storageClassName: Invalid value: "Fast": it has to be the name of a StorageClass, or "" for none`)},
		{"a path with a colon", at + ".mountPath", "/a:b", mounted("/a:b")},
		{"where the peer file is", at + ".mountPath", "/habitat-operator", mounted("/habitat-operator")},
		{"where the keys are", at + ".mountPath", "/hab/cache/keys/", mounted("/hab/cache/keys/")},
		{"where user.toml is", at + ".mountPath", "/hab/user/greeter/config", mounted("/hab/user/greeter/config")},
		{"where files are", at + ".mountPath", "/hab/svc/greeter/files", mounted("/hab/svc/greeter/files")},
		{"where files are, by a detour", at + ".mountPath", "/hab/svc/x/../greeter/files", mounted("/hab/svc/x/../greeter/files")},
		{"where files are, with two slashes", at + ".mountPath", "/hab/svc//greeter/files", mounted("/hab/svc//greeter/files")},
		{"where files are, with a dot", at + ".mountPath", "/hab/svc/./greeter/files", mounted("/hab/svc/./greeter/files")},
		{"all of the container", at + ".mountPath", "/", mounted("/")},
		{"two slashes at the end", at + ".mountPath", "/data//", mounted("/data//")},
		{"a slash at the end", at + ".mountPath", "/data/", nil},
		{"where another service would have its files", at + ".mountPath", "/hab/svc/other/files", nil},
		{"a size that is a number", at + ".size", int64(1), said(at + ".size: Invalid value: it is a number, and has to be a text")},
		{"nothing", at + ".size", "0", sized("0")},
		{"nothing in many digits", at + ".size", "0.000Gi", sized("0.000Gi")},
		{"less than nothing", at + ".size", "-1Gi", sized("-1Gi")},
		{"more than 64 bits hold", at + ".size", "8Ei", sized("8Ei")},
		{"which the library would write as 1", at + ".size", "1000E", sized("1000E")},
		{"an exponent of many digits", at + ".size", "1e999999999", sized("1e999999999")},
		{"an exponent that is too large", at + ".size", "1e99", sized("1e99")},
		{"many digits", at + ".size", strings.Repeat("1", 64), said(at + `.size: Invalid value: "` + strings.Repeat("1", 64) + `": it has 64 characters; the maximum is 63`)},
	})
}

// The API server has one form for a quantity, whatever form it gets.
func TestSizesAreCanonical(t *testing.T) {
	for given, want := range map[string]string{
		"2Gi": "2Gi", "2048Mi": "2Gi", "1.5Gi": "1536Mi", "0.5": "500m", ".5Gi": "512Mi", "5.": "5", "+5": "5", "007": "7",
		"1000M": "1G", "1e9": "1e9", "1000000000": "1G", "1E3": "1e3", "4Ei": "4Ei", "0.1n": "1n", "1e-99": "1e-9",
	} {
		h := parse(t, set(t, decode(t, greeter), "spec.v1beta2.persistentStorage.size", given))
		check.Equal(t, given, want, h.Spec.Storage.Size)
	}
}

func TestParseEnv(t *testing.T) {
	const at = "spec.v1beta2.env"
	one := func(source string, fields map[string]any) map[string]any {
		return map[string]any{"name": "A", "valueFrom": map[string]any{source: fields}}
	}
	many := make([]any, 501)
	for i := range many {
		many[i] = map[string]any{"name": fmt.Sprint("A", i)}
	}
	const (
		wantedName = `the name of the variable, of printable ASCII characters without '='`
		sources    = `, and has to have one of fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef and fileKeyRef`
	)
	checkAll(t, decode(t, greeter), []verdict{
		{"none", at, gone{}, nil},
		{"an empty list", at, []any{}, nil},
		{"no list", at, map[string]any{"A": "b"}, said(at + ": Invalid value: it is an object, and has to be a list")},
		{"as many as there may be", at, many[:500], nil},
		{"more", at, many, said(at + ": Invalid value: it has 501 elements; the maximum is 500")},
		{"no object", at + ".0", "A=b", said(at + "[0]: Invalid value: it is a text, and has to be an object")},
		{"null", at + ".0", nil, said(at + "[0]: Invalid value: it is null, and has to be an object")},
		{"no name", at + ".0.name", gone{}, said(at + "[0].name: Required value: " + wantedName)},
		{"a name that there cannot be", at + ".0.name", "A=B", said(at + `[0].name: Invalid value: "A=B": it has to be ` + wantedName)},
		{"a value that is a number is not repeated", at + ".0.value", int64(12345), said(at + "[0].value: Invalid value: it is a number, and has to be a text")},
		{"an empty value", at + ".0.value", "", nil},
		{"no value", at + ".0.value", gone{}, nil},
		{"a value beside a source", at + ".1.value", "x", said(at + "[1].valueFrom: Forbidden: there is already a value: leave one of the two out")},
		{"an empty value beside a source", at + ".1.value", "", nil},
		{"an unknown field", at + ".0.secret", "x", said(at + "[0].secret: Forbidden: no such field is known: there are name, value, valueFrom")},
		{"no source", at + ".1.valueFrom", map[string]any{}, said(at + "[1].valueFrom: Invalid value: it has 0 sources" + sources)},
		{"an unknown source", at + ".1.valueFrom", map[string]any{"vaultRef": map[string]any{}}, said(
			at+"[1].valueFrom: Invalid value: it has 0 sources"+sources,
			at+"[1].valueFrom.vaultRef: Forbidden: no such field is known: there are configMapKeyRef, fieldRef, fileKeyRef, resourceFieldRef, secretKeyRef")},
		{"two sources", at + ".1.valueFrom.secretKeyRef", map[string]any{"name": "a", "key": "b"}, said(at + "[1].valueFrom: Invalid value: it has 2 sources" + sources)},
		{"a source that is none", at + ".1.valueFrom.fieldRef", "spec.nodeName", said(
			at+"[1].valueFrom.fieldRef: Invalid value: it is a text, and has to be an object",
			at+"[1].valueFrom: Invalid value: it has 0 sources"+sources)},
		{"no path", at + ".1.valueFrom.fieldRef", map[string]any{"apiVersion": "v1"}, said(at + "[1].valueFrom.fieldRef.fieldPath: Required value: a text")},
		{"a path with its version", at + ".1.valueFrom.fieldRef.apiVersion", "v1", nil},
		{"a resource", at + ".1", one("resourceFieldRef", map[string]any{"resource": "limits.cpu", "containerName": "a", "divisor": "1m"}), nil},
		{"a resource in ones", at + ".1", one("resourceFieldRef", map[string]any{"resource": "limits.cpu", "divisor": int64(1)}), nil},
		{"a divisor that is none", at + ".1", one("resourceFieldRef", map[string]any{"resource": "limits.cpu", "divisor": "one"}), said(at + "[1].valueFrom.resourceFieldRef.divisor: Invalid value: it has to be a quantity, as 1Mi")},
		{"a divisor of another type", at + ".1", one("resourceFieldRef", map[string]any{"resource": "limits.cpu", "divisor": true}), said(at + "[1].valueFrom.resourceFieldRef.divisor: Invalid value: it is a boolean, and has to be a quantity")},
		{"no resource", at + ".1", one("resourceFieldRef", map[string]any{}), said(at + "[1].valueFrom.resourceFieldRef.resource: Required value: a text")},
		{"a key of a ConfigMap", at + ".1", one("configMapKeyRef", map[string]any{"name": "a", "key": "b", "optional": true}), nil},
		{"a key of no ConfigMap", at + ".1", one("configMapKeyRef", map[string]any{"key": "b"}), said(at + "[1].valueFrom.configMapKeyRef.name: Required value: a text")},
		{"a key of a Secret", at + ".1", one("secretKeyRef", map[string]any{"name": "a", "key": "b", "optional": false}), nil},
		{"no key of a Secret", at + ".1", one("secretKeyRef", map[string]any{"name": "a", "key": ""}), said(at + "[1].valueFrom.secretKeyRef.key: Required value: a text")},
		{"optional that is no boolean", at + ".1", one("secretKeyRef", map[string]any{"name": "a", "key": "b", "optional": "yes"}), said(at + "[1].valueFrom.secretKeyRef.optional: Invalid value: it is a text, and has to be a boolean")},
		{"a key of a file", at + ".1", one("fileKeyRef", map[string]any{"volumeName": "files", "path": "a", "key": "b", "optional": true}), nil},
		{"a file of no volume", at + ".1", one("fileKeyRef", map[string]any{"path": "a", "key": "b"}), said(at + "[1].valueFrom.fileKeyRef.volumeName: Required value: a text")},
		{"an unknown field of a source", at + ".1.valueFrom.fieldRef.path", "x", said(at + "[1].valueFrom.fieldRef.path: Forbidden: no such field is known: there are apiVersion, fieldPath")},
	})
}

func TestParseV1beta1(t *testing.T) {
	const only = "only customVersion v1beta2 has it: set customVersion: v1beta2, and move the fields below spec.v1beta2"
	checkAll(t, decode(t, old), []verdict{
		{"all fields are right", "kind", "Habitat", nil},
		{"no spec", "spec", gone{}, said("spec: Required value: the desired state of the Habitat")},
		{"a spec that is none", "spec", "x", said("spec: Invalid value: it is a text, and has to be an object")},
		{"the fields of v1beta2 beside them", "spec.v1beta2", map[string]any{}, said(`spec.v1beta2: Forbidden: customVersion v1beta1, which is also that of a Habitat without one, has its fields directly below spec: set customVersion: v1beta2`)},
		{"an unknown field", "spec.replicas", int64(1), said("spec.replicas: Forbidden: no such field is known: there are count, env, image, service")},
		{"an empty image", "spec.image", "", said("spec.image: Required value: " + imageMistake)},
		{"no service", "spec.service", gone{}, said("spec.service: Required value: the service, with name and topology")},
		{"an empty topology", "spec.service.topology", "", said("spec.service.topology: Required value: standalone or leader")},
		{"an empty group is none", "spec.service.group", "", nil},
		{"an empty Secret is none", "spec.service.configSecretName", "", nil},
		{"an empty ring is none", "spec.service.ringSecretName", "", nil},
		{"a group that would be a flag", "spec.service.group", "-blue", said(`spec.service.group: Invalid value: "-blue": ` + argumentMistake)},
		{"a ring that there cannot be", "spec.service.ringSecretName", "ringkey", said(`spec.service.ringSecretName: Invalid value: "ringkey": ` + ringMistake)},
		{"a bind without service", "spec.service.bind.0.service", "", said("spec.service.bind[0].service: Required value: " + targetMistake)},
		{"a channel", "spec.service.channel", "stable", said("spec.service.channel: Forbidden: " + only)},
		{"an empty channel is none", "spec.service.channel", "", nil},
		{"files", "spec.service.filesSecretName", "a", said("spec.service.filesSecretName: Forbidden: " + only)},
		{"a claim", "spec.persistentStorage", map[string]any{}, said("spec.persistentStorage: Forbidden: " + only)},
		{"a strategy", "spec.updateStrategy", "RollingUpdate", said("spec.updateStrategy: Forbidden: " + only)},
		{"less than no Pods", "spec.count", int64(-1), said("spec.count: Invalid value: -1: it has to be at least 0, and at most 2147483647")},
		{"a bad variable", "spec.env.0.name", "", said("spec.env[0].name: Required value: the name of the variable, of printable ASCII characters without '='")},
	})
}

func TestCustomVersionOf(t *testing.T) {
	for want, object := range map[string]map[string]any{
		"v1beta1": {}, "v1beta2": {"customVersion": "v1beta2"}, "v9": {"customVersion": "v9"},
		"5": {"customVersion": int64(5)}, "map[a:b]": {"customVersion": map[string]any{"a": "b"}},
	} {
		check.Equal(t, want, want, habitat.CustomVersionOf(object))
	}
	check.Equal(t, "empty", "v1beta1", habitat.CustomVersionOf(map[string]any{"customVersion": ""}))
	check.Equal(t, "null", "v1beta1", habitat.CustomVersionOf(map[string]any{"customVersion": nil}))
}

// A null counts as an absent field, at any place.
func TestNullsAreAbsent(t *testing.T) {
	object := decode(t, greeter)
	want := parse(t, object)
	for _, path := range []string{
		"spec.image", "spec.v1beta2.unknown", "spec.v1beta2.service.unknown", "spec.v1beta2.env.0.valueFrom", "spec.v1beta2.env.1.value",
		"spec.v1beta2.env.1.valueFrom.secretKeyRef", "spec.v1beta2.env.1.valueFrom.fieldRef.apiVersion", "spec.v1beta2.persistentStorage.unknown",
	} {
		check.Equal(t, path, want, parse(t, set(t, object, path, nil)))
	}
}

// Messages are short, whatever the input, and do not contain values that may be secret.
func TestMistakesAreShort(t *testing.T) {
	long := strings.Repeat("s3cret ", 100_000)
	object := decode(t, greeter)
	for _, path := range []string{
		"metadata.name", "spec.v1beta2.image", "spec.v1beta2.service.name", "spec.v1beta2.service.topology", "spec.v1beta2.service.group",
		"spec.v1beta2.service.bind.0.name", "spec.v1beta2.service.ringSecretName", "spec.v1beta2.service.configSecretName",
		"spec.v1beta2.persistentStorage.size", "spec.v1beta2.persistentStorage.mountPath", "spec.v1beta2.persistentStorage.storageClassName",
		"spec.v1beta2.updateStrategy", "spec.v1beta2.count", "spec.v1beta2.env", "spec.v1beta2.service", "spec.v1beta2", "customVersion",
		long, "spec.v1beta2." + long, "spec.v1beta2.env.0." + long, "spec.v1beta2.env.0.name",
	} {
		_, mistakes := habitat.Parse(set(t, object, path, long))
		if len(mistakes) == 0 {
			t.Errorf("%.40s: no mistake", path)
		}
		for _, mistake := range mistakes {
			if text := mistake.Error(); len(text) > 500 {
				t.Errorf("%.40s: %d bytes: %.600s", path, len(text), text)
			}
		}
	}
	for _, value := range []any{map[string]any{"a": "s3cret"}, []any{"s3cret"}} {
		for _, path := range []string{"env.0.value", "env.0.valueFrom", "env.0", "env", "env.1.valueFrom.fieldRef", "image", "service.group"} {
			_, mistakes := habitat.Parse(set(t, object, "spec.v1beta2."+path, value))
			if text := strings.Join(texts(mistakes), "\n"); len(mistakes) == 0 || strings.Contains(text, "s3cret") {
				t.Errorf("%s: %d mistakes: %s", path, len(mistakes), text)
			}
		}
	}
}
