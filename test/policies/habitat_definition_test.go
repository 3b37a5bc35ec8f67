package policies

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/habitat"
	"github.com/krake-observer/krake-observer/test/kit"
)

// Messages of the definition about a field, after its path.
const (
	notAllChecked = ", <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]"

	sayName        = "must have at most 52 characters, which are small letters, digits and hyphens, with no hyphen at its ends: it is part of labels of the Pods; take another name"
	sayPeers       = "must not be peers: the ConfigMap habitat-peers is that of the ring; take another name"
	sayVersion     = "customVersion cannot be changed (if absent, it is v1beta1), because each version makes another workload: create a new Habitat, and delete this one"
	sayBelow       = "customVersion v1beta2 has its fields in spec.v1beta2: put them there"
	sayMove        = "customVersion v1beta2 has its fields in spec.v1beta2: move count, env, image and service there"
	sayFlat        = "customVersion v1beta1, which it is if absent, has its fields directly in spec: set customVersion: v1beta2, beside spec"
	sayFlatImage   = "customVersion v1beta1, which it is if absent, needs the image of the service"
	sayFlatService = "customVersion v1beta1, which it is if absent, needs name and topology of the service"
	sayOnDelete    = "OnDelete is for topology leader, whose members elect anew if all of them are replaced: use RollingUpdate"
	sayMounted     = "something else is mounted there (peer file, ring key, user.toml or files): use another path"
	sayClaims      = "persistentStorage cannot be added, removed or changed, because a StatefulSet cannot change its claim templates: create another Habitat, or delete this one and create it again, which keeps its claims"
	sayImage       = "must be an image, without white space: name one as registry.example.org/origin/service:1.0"
	sayVariable    = "must be the name of a variable, of printable ASCII characters without ="
	sayValue       = "a variable has value or valueFrom: leave one of them out"
	saySource      = "exactly one of fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef and fileKeyRef is wanted: keep one"
	saySize        = "must be a quantity that is more than 0, and at most 4Ei: write it as 10Gi"
	sayPath        = "must be an absolute path below /, without a colon, empty parts, . and ..: write it as /data"
	sayClass       = "must be the name of a StorageClass (small letters, digits, hyphens and dots), or empty for none"
	sayService     = "must be the name of a service (letters, digits, _, . and -), because it is part of paths"
	sayWord        = "must not be empty, have white space or begin with a hyphen: leave it out for the default"
	saySecret      = "must be the name of a Secret (small letters, digits, hyphens and dots): leave it out if there is none"
	sayRing        = "must be the name of the ring (small letters, digits and hyphens), a hyphen, and the 14 digits of the key's revision: write it as ring-20240131235959"
	sayBind        = "must be the name of a bind: not empty, without white space and colons, and not beginning with a hyphen"
	sayBound       = "must be the name of a service: not empty, without white space, colons and dots"
	sayBoundGroup  = "must be a service group, as default: not empty, without white space, colons and dots"
)

// cell is a Habitat of the table, and the definition's message.
type cell struct {
	what string
	// change is a merge patch of v1beta2Habitat, or of v1beta1Habitat if it sets
	// v1beta1.
	change  string
	want    string
	v1beta1 bool
	// differs is the reason why habitat.Parse reports another result.
	differs string
}

func (c cell) habitat() string {
	if c.v1beta1 {
		return v1beta1Habitat
	}
	return v1beta2Habitat
}

// blocked is a mistake that keeps the server from checking further.
func blocked(mistake string) string { return "[" + mistake + notAllChecked }

// x returns a text of n characters.
func x(n int) string { return strings.Repeat("x", n) }

func inV1beta2(fields string) string { return "spec: {v1beta2: {" + fields + "}}" }
func inService(fields string) string { return "spec: {v1beta2: {service: {" + fields + "}}}" }
func inStorage(fields string) string {
	return "spec: {v1beta2: {persistentStorage: {size: 1Gi, mountPath: /data, " + fields + "}}}"
}
func inEnv(fields string) string    { return "spec: {v1beta2: {env: [{" + fields + "}]}}" }
func inSource(fields string) string { return inEnv("name: A, valueFrom: {" + fields + "}") }
func inBind(fields string) string {
	return inService("bind: [{name: db, service: pg, group: default, " + fields + "}]")
}

// ofVersions: which fields belong to which custom version.
var ofVersions = []cell{
	{what: "v1beta2", change: ""},
	{what: "v1beta1, absent", v1beta1: true},
	{what: "v1beta1, empty", change: `customVersion: ""`, v1beta1: true},
	{what: "v1beta1, said", change: "customVersion: v1beta1", v1beta1: true},
	{what: "v1beta3, which is told in the status", change: "{customVersion: v1beta3, spec: {v1beta2: null}}", differs: "it knows no such version"},
	{what: "v1beta3 with fields of others", change: "{customVersion: v1beta3, spec: {image: x}}", differs: "it knows no such version"},
	{what: "a version of 63 characters", change: "customVersion: " + x(63), differs: "it knows no such version"},
	{what: "a version of 64 characters", change: "customVersion: " + x(64), want: blocked("customVersion: Too long: may not be more than 63 bytes")},
	{what: "a version that is a number", change: "customVersion: 2", want: blocked(`customVersion: Invalid value: "integer": customVersion in body must be of type string: "integer"`)},
	{what: "no spec", change: "spec: null", want: blocked("spec: Required value"), differs: "it names spec.v1beta2"},
	{what: "v1beta2 without spec.v1beta2", change: "spec: {v1beta2: null}", want: "spec.v1beta2: Required value: " + sayBelow},
	{what: "v1beta2 with a flat image", change: "spec: {image: x}", want: "spec: Forbidden: " + sayMove, differs: "it names the field"},
	{what: "v1beta2 with a flat count", change: "spec: {count: 0}", want: "spec: Forbidden: " + sayMove, differs: "it names the field"},
	{what: "v1beta2 with a flat env", change: "spec: {env: []}", want: "spec: Forbidden: " + sayMove, differs: "it names the field"},
	{what: "v1beta2 with a flat service", change: "spec: {service: {name: x, topology: leader}}", want: "spec: Forbidden: " + sayMove, differs: "it names the field"},
	{what: "v1beta2 and all fields flat", change: "{customVersion: v1beta2}", v1beta1: true,
		want: "[spec.v1beta2: Required value: " + sayBelow + ", spec: Forbidden: " + sayMove + "]", differs: "it names the fields"},
	{what: "v1beta1 with spec.v1beta2", change: "customVersion: v1beta1", want: "spec.v1beta2: Forbidden: " + sayFlat},
	{what: "no version with spec.v1beta2", change: "customVersion: null", want: "spec.v1beta2: Forbidden: " + sayFlat},
	{what: "an empty version with spec.v1beta2", change: `customVersion: ""`, want: "spec.v1beta2: Forbidden: " + sayFlat},
	{what: "v1beta1 without an image", change: "spec: {image: null}", v1beta1: true, want: "spec.image: Required value: " + sayFlatImage},
	{what: "v1beta1 without a service", change: "spec: {service: null}", v1beta1: true, want: "spec.service: Required value: " + sayFlatService},
	{what: "v1beta1 with a topology that is none", change: "spec: {service: {topology: ring}}", v1beta1: true,
		want: blocked(`spec.service.topology: Unsupported value: "ring": supported values: "standalone", "leader"`)},
	{what: "v1beta1 without a topology", change: "spec: {service: {topology: null}}", v1beta1: true, want: blocked("spec.service.topology: Required value")},
	{what: "v1beta1 without a name", change: "spec: {service: {name: null}}", v1beta1: true, want: blocked("spec.service.name: Required value")},
	{what: "v1beta1 with empty fields, which are none", v1beta1: true, change: `spec: {service: {group: "", configSecretName: "", ringSecretName: ""}}`},
	{what: "v1beta1 with all fields", v1beta1: true, change: "spec: {count: 3, env: [{name: A}], service: {group: a, configSecretName: a, ringSecretName: a-20230101000000, bind: [{name: a, service: a, group: a}]}}"},
	{what: "v1beta1 with a group that is a flag", v1beta1: true, change: "spec: {service: {group: --org}}", want: `spec.service.group: Invalid value: "--org": ` + sayWord},
	{what: "v1beta1 with a long group", v1beta1: true, change: "spec: {service: {group: " + x(254) + "}}", want: blocked("spec.service.group: Too long: may not be more than 253 bytes")},
	{what: "v1beta1 with a Secret that cannot be", v1beta1: true, change: "spec: {service: {configSecretName: A}}", want: `spec.service.configSecretName: Invalid value: "A": ` + saySecret},
	{what: "v1beta1 with a Secret of a long name", v1beta1: true, change: "spec: {service: {configSecretName: " + x(254) + "}}", want: blocked("spec.service.configSecretName: Too long: may not be more than 253 bytes")},
	{what: "v1beta1 with a ring that cannot be", v1beta1: true, change: "spec: {service: {ringSecretName: ring}}", want: `spec.service.ringSecretName: Invalid value: "ring": ` + sayRing},
	{what: "v1beta1 with a long ring", v1beta1: true, change: "spec: {service: {ringSecretName: " + x(49) + "-20230101000000}}", want: blocked("spec.service.ringSecretName: Too long: may not be more than 63 bytes")},
	{what: "v1beta1 with a channel", v1beta1: true, change: "spec: {service: {channel: stable}}", want: unknown("spec.service.channel")},
	{what: "v1beta1 with files", v1beta1: true, change: "spec: {service: {filesSecretName: a}}", want: unknown("spec.service.filesSecretName")},
	{what: "v1beta1 with a claim", v1beta1: true, change: "spec: {persistentStorage: {size: 1Gi, mountPath: /data}}", want: unknown("spec.persistentStorage")},
	{what: "v1beta1 with an update strategy", v1beta1: true, change: "spec: {updateStrategy: OnDelete}", want: unknown("spec.updateStrategy")},
	{what: "an unknown field", change: inV1beta2("replicas: 1"), want: unknown("spec.v1beta2.replicas")},
	{what: "an unknown field of the service", change: inService("chanel: stable"), want: unknown("spec.v1beta2.service.chanel")},
	{what: "an unknown field of a variable", change: inEnv("name: A, val: b"), want: unknown("spec.v1beta2.env[0].val")},
	{what: "an unknown field of a source", change: inSource("fieldRef: {fieldPath: a, path: b}"), want: unknown("spec.v1beta2.env[0].valueFrom.fieldRef.path")},
	{what: "an unknown field at the top", change: "replicas: 1", want: unknown("replicas")},
}

// unknown is the server's message about an unknown field.
func unknown(path string) string {
	return `Habitat in version "v1beta1" cannot be handled as a Habitat: strict decoding error: unknown field "` + path + `"`
}

// ofNames: the name of a Habitat is part of other names.
var ofNames = []cell{
	{what: "a name of 52 characters", change: "metadata: {name: " + x(52) + "}"},
	{what: "a name of 53 characters", change: "metadata: {name: " + x(53) + "}", want: "metadata.name: Invalid value: " + sayName},
	{what: "a name of one digit", change: `metadata: {name: "1"}`},
	{what: "a name with a dot", change: "metadata: {name: a.b}", want: "metadata.name: Invalid value: " + sayName},
	{what: "peers", change: "metadata: {name: peers}", want: "metadata.name: Invalid value: " + sayPeers},
	{what: "a name that ends so", change: "metadata: {name: my-peers}"},
}

// ofPods: what to run, and how many replicas. Both versions have these fields.
var ofPods = []cell{
	{what: "no count, which is none", change: inV1beta2("count: null")},
	{what: "count 0", change: inV1beta2("count: 0")},
	{what: "the largest count", change: inV1beta2("count: 2147483647")},
	{what: "more than that", change: inV1beta2("count: 2147483648"), want: "spec.v1beta2.count: Invalid value: 2147483648: spec.v1beta2.count in body should be less than or equal to 2147483647"},
	{what: "count -1", change: inV1beta2("count: -1"), want: "spec.v1beta2.count: Invalid value: -1: spec.v1beta2.count in body should be greater than or equal to 0"},
	{what: "count two", change: inV1beta2("count: two"), want: blocked(`spec.v1beta2.count: Invalid value: "string": spec.v1beta2.count in body must be of type integer: "string"`)},
	{what: "count 1.5", change: inV1beta2("count: 1.5"), want: blocked(`spec.v1beta2.count: Invalid value: "number": spec.v1beta2.count in body must be of type integer: "number"` +
		`, <nil>: Invalid value: "": Checked value must be of type integer (default format) in spec.v1beta2.count`)},
	{what: "an empty image", change: inV1beta2(`image: ""`), want: `spec.v1beta2.image: Invalid value: "": ` + sayImage},
	{what: "a leader alone", change: inV1beta2("count: 1, service: {topology: leader}")},
	{what: "an image with a blank", change: inV1beta2(`image: "a b"`), want: `spec.v1beta2.image: Invalid value: "a b": ` + sayImage},
	{what: "an image with a line feed", change: inV1beta2(`image: "a\n"`), want: `spec.v1beta2.image: Invalid value: "a\n": ` + sayImage},
	{what: "an image with a vertical tab", change: inV1beta2(`image: "a\v"`), want: `spec.v1beta2.image: Invalid value: "a\v": ` + sayImage},
	{what: "an image with a blank that does not break", change: inV1beta2("image: \"a\\_\""), want: "spec.v1beta2.image: Invalid value: \"a\\u00a0\": " + sayImage},
	{what: "an image with a next line", change: inV1beta2(`image: "a\N"`), want: `spec.v1beta2.image: Invalid value: "a\u0085": ` + sayImage},
	{what: "an image of 1024 characters", change: inV1beta2("image: " + x(1024))},
	{what: "an image of 1025 characters", change: inV1beta2("image: " + x(1025)), want: blocked("spec.v1beta2.image: Too long: may not be more than 1024 bytes")},
}

// ofUpdates: how Pods are replaced.
var ofUpdates = []cell{
	{what: "no image", change: inV1beta2("image: null"), want: blocked("spec.v1beta2.image: Required value")},
	{what: "RollingUpdate", change: inV1beta2("updateStrategy: RollingUpdate")},
	{what: "OnDelete of a leader", change: inV1beta2("updateStrategy: OnDelete, service: {topology: leader}")},
	{what: "RollingUpdate of a leader", change: inV1beta2("updateStrategy: RollingUpdate, service: {topology: leader}")},
	{what: "OnDelete of others", change: inV1beta2("updateStrategy: OnDelete"), want: "spec.v1beta2.updateStrategy: Invalid value: " + sayOnDelete},
	{what: "an update strategy that there is not", change: inV1beta2("updateStrategy: Recreate"),
		want: blocked(`spec.v1beta2.updateStrategy: Unsupported value: "Recreate": supported values: "RollingUpdate", "OnDelete"`)},
	{what: "an empty update strategy", change: inV1beta2(`updateStrategy: ""`),
		want: blocked(`spec.v1beta2.updateStrategy: Unsupported value: "": supported values: "RollingUpdate", "OnDelete"`)},
}

// ofServices: the service. Both versions have its fields.
var ofServices = []cell{
	{what: "no topology", change: inService("topology: null"), want: blocked("spec.v1beta2.service.topology: Required value")},
	{what: "topology ring", change: inService("topology: ring"), want: blocked(`spec.v1beta2.service.topology: Unsupported value: "ring": supported values: "standalone", "leader"`)},
	{what: "topology Leader", change: inService("topology: Leader"), want: blocked(`spec.v1beta2.service.topology: Unsupported value: "Leader": supported values: "standalone", "leader"`)},
	{what: "no name", change: inService("name: null"), want: blocked("spec.v1beta2.service.name: Required value")},
	{what: "an empty name", change: inService(`name: ""`), want: `spec.v1beta2.service.name: Invalid value: "": ` + sayService},
	{what: "a name with all that it may have", change: inService("name: A_b.c-9")},
	{what: "a name of 253 characters", change: inService("name: " + x(253))},
	{what: "a name of 254 characters", change: inService("name: " + x(254)), want: blocked("spec.v1beta2.service.name: Too long: may not be more than 253 bytes")},
	{what: "a name that a shell reads otherwise", change: inService(`name: "a;b"`), want: `spec.v1beta2.service.name: Invalid value: "a;b": ` + sayService},
	{what: "a name with a line feed", change: inService(`name: "a\n"`), want: `spec.v1beta2.service.name: Invalid value: "a\n": ` + sayService},
	{what: "a name that is a path", change: inService("name: a/b"), want: `spec.v1beta2.service.name: Invalid value: "a/b": ` + sayService},
	{what: "a name that is this folder", change: inService(`name: "."`), want: `spec.v1beta2.service.name: Invalid value: ".": ` + sayService},
	{what: "a name that is the folder above", change: inService(`name: ".."`), want: `spec.v1beta2.service.name: Invalid value: "..": ` + sayService},
	{what: "a name of three dots", change: inService(`name: "..."`)},
}

// ofRings: the ring of the service, and its configuration.
var ofRings = []cell{
	{what: "no service", change: inV1beta2("service: null"), want: blocked("spec.v1beta2.service: Required value")},
	{what: "a group and a channel", change: inService("group: blue, channel: unstable")},
	{what: "an empty group", change: inService(`group: ""`), want: `spec.v1beta2.service.group: Invalid value: "": ` + sayWord},
	{what: "an empty channel", change: inService(`channel: ""`), want: `spec.v1beta2.service.channel: Invalid value: "": ` + sayWord},
	{what: "a group that is a flag", change: inService("group: --org"), want: `spec.v1beta2.service.group: Invalid value: "--org": ` + sayWord},
	{what: "a channel with a tab", change: inService(`channel: "a\tb"`), want: `spec.v1beta2.service.channel: Invalid value: "a\tb": ` + sayWord},
	{what: "a group of 253 characters", change: inService("group: " + x(253))},
	{what: "a group of 254 characters", change: inService("group: " + x(254)), want: blocked("spec.v1beta2.service.group: Too long: may not be more than 253 bytes")},
	{what: "a channel of 254 characters", change: inService("channel: " + x(254)), want: blocked("spec.v1beta2.service.channel: Too long: may not be more than 253 bytes")},

	{what: "Secrets", change: inService("configSecretName: a.b-c, filesSecretName: d")},
	{what: "no name of a Secret with user.toml", change: inService(`configSecretName: ""`), want: `spec.v1beta2.service.configSecretName: Invalid value: "": ` + saySecret},
	{what: "no name of a Secret with files", change: inService(`filesSecretName: ""`), want: `spec.v1beta2.service.filesSecretName: Invalid value: "": ` + saySecret},
	{what: "a Secret in capitals", change: inService("configSecretName: A"), want: `spec.v1beta2.service.configSecretName: Invalid value: "A": ` + saySecret},
	{what: "a Secret that ends with a dot", change: inService("filesSecretName: a."), want: `spec.v1beta2.service.filesSecretName: Invalid value: "a.": ` + saySecret},
	{what: "a Secret of 253 characters", change: inService("configSecretName: " + x(253))},
	{what: "a Secret of 254 characters", change: inService("configSecretName: " + x(254)), want: blocked("spec.v1beta2.service.configSecretName: Too long: may not be more than 253 bytes")},
	{what: "files of 254 characters", change: inService("filesSecretName: " + x(254)), want: blocked("spec.v1beta2.service.filesSecretName: Too long: may not be more than 253 bytes")},

	{what: "a ring", change: inService("ringSecretName: a-b-c-20230101000000")},
	{what: "a ring without a time", change: inService("ringSecretName: ringkey"), want: `spec.v1beta2.service.ringSecretName: Invalid value: "ringkey": ` + sayRing},
	{what: "a ring with few digits", change: inService("ringSecretName: abc-123"), want: `spec.v1beta2.service.ringSecretName: Invalid value: "abc-123": ` + sayRing},
	{what: "a ring with 15 digits", change: inService("ringSecretName: a-202301010000001"), want: `spec.v1beta2.service.ringSecretName: Invalid value: "a-202301010000001": ` + sayRing},
	{what: "a ring with a dot", change: inService("ringSecretName: a.b-20230101000000"), want: `spec.v1beta2.service.ringSecretName: Invalid value: "a.b-20230101000000": ` + sayRing},
	{what: "a ring of which no Secret can be", change: inService("ringSecretName: a_b-20230101000000"), want: `spec.v1beta2.service.ringSecretName: Invalid value: "a_b-20230101000000": ` + sayRing},
	{what: "an empty ring", change: inService(`ringSecretName: ""`), want: `spec.v1beta2.service.ringSecretName: Invalid value: "": ` + sayRing},
	{what: "a ring without a name", change: inService(`ringSecretName: "-20230101000000"`), want: `spec.v1beta2.service.ringSecretName: Invalid value: "-20230101000000": ` + sayRing},
	{what: "a ring that ends with a hyphen", change: inService("ringSecretName: a--20230101000000"), want: `spec.v1beta2.service.ringSecretName: Invalid value: "a--20230101000000": ` + sayRing},
	{what: "a ring of 63 characters", change: inService("ringSecretName: " + x(48) + "-20230101000000")},
	{what: "a ring of 64 characters", change: inService("ringSecretName: " + x(49) + "-20230101000000"), want: blocked("spec.v1beta2.service.ringSecretName: Too long: may not be more than 63 bytes")},
}

// ofBinds: the services that it uses. Both versions have these fields.
var ofBinds = []cell{
	{what: "no binds", change: inService("bind: []")},
	{what: "a bind", change: inBind("")},
	{what: "a bind without a name", change: inService("bind: [{service: pg, group: default}]"), want: blocked("spec.v1beta2.service.bind[0].name: Required value")},
	{what: "a bind without a service", change: inService("bind: [{name: db, group: default}]"), want: blocked("spec.v1beta2.service.bind[0].service: Required value")},
	{what: "a bind without a group", change: inService("bind: [{name: db, service: pg}]"), want: blocked("spec.v1beta2.service.bind[0].group: Required value")},
	{what: "a bind of an empty name", change: inBind(`name: ""`), want: `spec.v1beta2.service.bind[0].name: Invalid value: "": ` + sayBind},
	{what: "a bind of an empty service", change: inBind(`service: ""`), want: `spec.v1beta2.service.bind[0].service: Invalid value: "": ` + sayBound},
	{what: "a bind of an empty group", change: inBind(`group: ""`), want: `spec.v1beta2.service.bind[0].group: Invalid value: "": ` + sayBoundGroup},
	{what: "a bind with a colon", change: inBind(`name: "a:b"`), want: `spec.v1beta2.service.bind[0].name: Invalid value: "a:b": ` + sayBind},
	{what: "a bind that is a flag", change: inBind("name: -a"), want: `spec.v1beta2.service.bind[0].name: Invalid value: "-a": ` + sayBind},
	{what: "a bind with a blank", change: inBind("name: a b"), want: `spec.v1beta2.service.bind[0].name: Invalid value: "a b": ` + sayBind},
	{what: "a bind with dots and hyphens", change: inBind("name: a.b-c, service: -pg, group: -x")},
	{what: "a bind of a service with a dot", change: inBind("service: p.g"), want: `spec.v1beta2.service.bind[0].service: Invalid value: "p.g": ` + sayBound},
	{what: "a bind of a service with a colon", change: inBind(`service: "p:g"`), want: `spec.v1beta2.service.bind[0].service: Invalid value: "p:g": ` + sayBound},
	{what: "a bind of a group with a dot", change: inBind("group: a.b"), want: `spec.v1beta2.service.bind[0].group: Invalid value: "a.b": ` + sayBoundGroup},
	{what: "a bind of a group with an organisation", change: inBind(`group: "a@b"`)},
	{what: "two binds", change: inService("bind: [{name: a, service: pg, group: default}, {name: b, service: pg, group: default}]")},
	{what: "two binds of one name", change: inService("bind: [{name: a, service: pg, group: default}, {name: a, service: my, group: default}]"),
		want: `spec.v1beta2.service.bind[1]: Duplicate value: {"name":"a"}`, differs: "it names the field name of the bind"},
	{what: "a bind of a name of 254 characters", change: inBind("name: " + x(254)), want: blocked("spec.v1beta2.service.bind[0].name: Too long: may not be more than 253 bytes")},
	{what: "a bind of a service of 254 characters", change: inBind("service: " + x(254)), want: blocked("spec.v1beta2.service.bind[0].service: Too long: may not be more than 253 bytes")},
	{what: "a bind of a group of 254 characters", change: inBind("group: " + x(254)), want: blocked("spec.v1beta2.service.bind[0].group: Too long: may not be more than 253 bytes")},
	{what: "100 binds", change: inService("bind: [" + binds(100) + "]")},
	{what: "101 binds", change: inService("bind: [" + binds(101) + "]"), want: blocked("spec.v1beta2.service.bind: Too many: 101: must have at most 100 items")},
}

func binds(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("{name: b%d, service: s, group: g}", i))
	}
	return strings.Join(all, ", ")
}

// ofStorage: a claim for each Pod.
var ofStorage = []cell{
	{what: "a claim", change: inStorage("")},
	{what: "a claim without a size", change: inV1beta2("persistentStorage: {mountPath: /data}"), want: blocked("spec.v1beta2.persistentStorage.size: Required value")},
	{what: "a claim without a path", change: inV1beta2("persistentStorage: {size: 1Gi}"), want: blocked("spec.v1beta2.persistentStorage.mountPath: Required value")},
	{what: "10 gigs", change: inStorage("size: 10 gigs"), want: `spec.v1beta2.persistentStorage.size: Invalid value: "10 gigs": ` + saySize},
	{what: "an empty size", change: inStorage(`size: ""`), want: `spec.v1beta2.persistentStorage.size: Invalid value: "": ` + saySize},
	{what: "nothing", change: inStorage(`size: "0"`), want: `spec.v1beta2.persistentStorage.size: Invalid value: "0": ` + saySize},
	{what: "less than nothing", change: inStorage("size: -1Gi"), want: `spec.v1beta2.persistentStorage.size: Invalid value: "-1Gi": ` + saySize},
	{what: "a size that is a number", change: inStorage("size: 1024"), want: blocked(`spec.v1beta2.persistentStorage.size: Invalid value: "integer": spec.v1beta2.persistentStorage.size in body must be of type string: "integer"`)},
	{what: "a size in another writing", change: inStorage(`size: "1.5e3"`)},
	{what: "a size with a sign", change: inStorage(`size: "+1Gi"`)},
	{what: "the largest size", change: inStorage("size: 4Ei")},
	{what: "a larger one", change: inStorage("size: 4.1Ei"), want: `spec.v1beta2.persistentStorage.size: Invalid value: "4.1Ei": ` + saySize},
	{what: "one that would be cut", change: inStorage("size: 1000E"), want: `spec.v1beta2.persistentStorage.size: Invalid value: "1000E": ` + saySize},
	{what: "one that is too small", change: inStorage(`size: "1e-100"`), want: `spec.v1beta2.persistentStorage.size: Invalid value: "1e-100": ` + saySize},
	{what: "a size of 64 characters", change: inStorage(`size: "` + strings.Repeat("0", 63) + `1"`), want: blocked("spec.v1beta2.persistentStorage.size: Too long: may not be more than 63 bytes")},

	{what: "a relative path", change: inStorage("mountPath: data"), want: `spec.v1beta2.persistentStorage.mountPath: Invalid value: "data": ` + sayPath},
	{what: "an empty path", change: inStorage(`mountPath: ""`), want: `spec.v1beta2.persistentStorage.mountPath: Invalid value: "": ` + sayPath},
	{what: "a path with a colon", change: inStorage(`mountPath: "/a:b"`), want: `spec.v1beta2.persistentStorage.mountPath: Invalid value: "/a:b": ` + sayPath},
	{what: "a path with a slash at the end", change: inStorage("mountPath: /data/")},
	{what: "the whole file system", change: inStorage("mountPath: /"), want: `spec.v1beta2.persistentStorage.mountPath: Invalid value: "/": ` + sayPath},
	{what: "a path with hidden folders", change: inStorage("mountPath: /.data/..data/...")},
	{what: "a path with empty parts", change: inStorage("mountPath: /hab//x"), want: `spec.v1beta2.persistentStorage.mountPath: Invalid value: "/hab//x": ` + sayPath},
	{what: "a path that goes nowhere", change: inStorage("mountPath: /./x"), want: `spec.v1beta2.persistentStorage.mountPath: Invalid value: "/./x": ` + sayPath},
	{what: "a path that goes back", change: inStorage("mountPath: /data/.."), want: `spec.v1beta2.persistentStorage.mountPath: Invalid value: "/data/..": ` + sayPath},
	{what: "a path of 4096 characters", change: inStorage("mountPath: /" + x(4095))},
	{what: "a path of 4097 characters", change: inStorage("mountPath: /" + x(4096)), want: blocked("spec.v1beta2.persistentStorage.mountPath: Too long: may not be more than 4096 bytes")},
	{what: "the folder of the peer file", change: inStorage("mountPath: /habitat-operator"), want: "spec.v1beta2.persistentStorage.mountPath: Invalid value: " + sayMounted},
	{what: "the same with a slash", change: inStorage("mountPath: /habitat-operator/"), want: "spec.v1beta2.persistentStorage.mountPath: Invalid value: " + sayMounted},
	{what: "the folder of the keys", change: inStorage("mountPath: /hab/cache/keys"), want: "spec.v1beta2.persistentStorage.mountPath: Invalid value: " + sayMounted},
	{what: "the same with a slash at the end", change: inStorage("mountPath: /hab/cache/keys/"), want: "spec.v1beta2.persistentStorage.mountPath: Invalid value: " + sayMounted},
	{what: "the folder of user.toml", change: inStorage("mountPath: /hab/user/shop/config"), want: "spec.v1beta2.persistentStorage.mountPath: Invalid value: " + sayMounted},
	{what: "that with a slash", change: inStorage("mountPath: /hab/user/shop/config/"), want: "spec.v1beta2.persistentStorage.mountPath: Invalid value: " + sayMounted},
	{what: "the folder of files", change: inStorage("mountPath: /hab/svc/shop/files"), want: "spec.v1beta2.persistentStorage.mountPath: Invalid value: " + sayMounted},
	{what: "that with a slash at the end", change: inStorage("mountPath: /hab/svc/shop/files/"), want: "spec.v1beta2.persistentStorage.mountPath: Invalid value: " + sayMounted},
	{what: "the folder of another service's files", change: inStorage("mountPath: /hab/svc/other/files")},
	{what: "the folder of data", change: inStorage("mountPath: /hab/svc/shop/data")},

	{what: "a class", change: inStorage("storageClassName: fast.disk-1")},
	{what: "no class", change: inStorage(`storageClassName: ""`)},
	{what: "a class that cannot be", change: inStorage("storageClassName: Fast Disk"), want: `spec.v1beta2.persistentStorage.storageClassName: Invalid value: "Fast Disk": ` + sayClass},
	{what: "a class of 254 characters", change: inStorage("storageClassName: " + x(254)), want: blocked("spec.v1beta2.persistentStorage.storageClassName: Too long: may not be more than 253 bytes")},
}

// ofVariables: the variables of the Pods. Both versions have them.
var ofVariables = []cell{
	{what: "no variables", change: inV1beta2("env: []")},
	{what: "a variable", change: inEnv("name: A, value: b")},
	{what: "a variable without a value", change: inEnv("name: A")},
	{what: "two variables of one name", change: inV1beta2("env: [{name: A, value: a}, {name: A, value: b}]")},
	{what: "a variable that is no identifier", change: inEnv(`name: "a.b-c d"`)},
	{what: "a variable without a name", change: inEnv("value: b"), want: blocked("spec.v1beta2.env[0].name: Required value")},
	{what: "a variable of an empty name", change: inEnv(`name: ""`), want: `spec.v1beta2.env[0].name: Invalid value: "": ` + sayVariable},
	{what: "a variable with =", change: inEnv("name: A=B"), want: `spec.v1beta2.env[0].name: Invalid value: "A=B": ` + sayVariable},
	{what: "a variable in other letters", change: inEnv("name: Ä"), want: `spec.v1beta2.env[0].name: Invalid value: "Ä": ` + sayVariable},
	{what: "a variable of 1024 characters", change: inEnv("name: " + x(1024))},
	{what: "a variable of 1025 characters", change: inEnv("name: " + x(1025)), want: blocked("spec.v1beta2.env[0].name: Too long: may not be more than 1024 bytes")},
	{what: "a value that is a number", change: inEnv("name: A, value: 1"), want: blocked(`spec.v1beta2.env[0].value: Invalid value: "integer": spec.v1beta2.env[0].value in body must be of type string: "integer"`)},
	{what: "a value beside a source", change: inEnv("name: A, value: a, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}"), want: "spec.v1beta2.env[0].valueFrom: Forbidden: " + sayValue},
	{what: "an empty value beside a source", change: inEnv(`name: A, value: "", valueFrom: {fieldRef: {fieldPath: spec.nodeName}}`)},
	{what: "no source", change: inSource(""), want: "spec.v1beta2.env[0].valueFrom: Invalid value: " + saySource},
	{what: "two sources", change: inSource("fieldRef: {fieldPath: spec.nodeName}, resourceFieldRef: {resource: limits.cpu}"), want: "spec.v1beta2.env[0].valueFrom: Invalid value: " + saySource},
	{what: "a field", change: inSource("fieldRef: {apiVersion: v1, fieldPath: status.podIP}")},
	{what: "a field without a path", change: inSource("fieldRef: {apiVersion: v1}"), want: blocked("spec.v1beta2.env[0].valueFrom.fieldRef.fieldPath: Required value")},
	{what: "a field of an empty path", change: inSource(`fieldRef: {fieldPath: ""}`), want: short("spec.v1beta2.env[0].valueFrom.fieldRef.fieldPath")},
	{what: "a resource", change: inSource("resourceFieldRef: {containerName: a, resource: limits.memory, divisor: 1Mi}")},
	{what: "a resource divided by a number", change: inSource("resourceFieldRef: {resource: limits.memory, divisor: 1024}")},
	{what: "a resource divided by a word", change: inSource("resourceFieldRef: {resource: limits.memory, divisor: a}"),
		want: `spec.v1beta2.env[0].valueFrom.resourceFieldRef.divisor: Invalid value: "a": spec.v1beta2.env[0].valueFrom.resourceFieldRef.divisor in body should match '` + divisor + `'`},
	{what: "no resource", change: inSource("resourceFieldRef: {containerName: a}"), want: blocked("spec.v1beta2.env[0].valueFrom.resourceFieldRef.resource: Required value")},
	{what: "an empty resource", change: inSource(`resourceFieldRef: {resource: ""}`), want: short("spec.v1beta2.env[0].valueFrom.resourceFieldRef.resource")},
	{what: "a ConfigMap", change: inSource("configMapKeyRef: {name: a, key: b, optional: true}")},
	{what: "a ConfigMap without a name", change: inSource("configMapKeyRef: {key: b}"), want: blocked("spec.v1beta2.env[0].valueFrom.configMapKeyRef.name: Required value")},
	{what: "a ConfigMap without a key", change: inSource("configMapKeyRef: {name: a}"), want: blocked("spec.v1beta2.env[0].valueFrom.configMapKeyRef.key: Required value")},
	{what: "a ConfigMap of an empty name", change: inSource(`configMapKeyRef: {name: "", key: b}`), want: short("spec.v1beta2.env[0].valueFrom.configMapKeyRef.name")},
	{what: "a ConfigMap and an empty key", change: inSource(`configMapKeyRef: {name: a, key: ""}`), want: short("spec.v1beta2.env[0].valueFrom.configMapKeyRef.key")},
	{what: "a ConfigMap that is optional in words", change: inSource("configMapKeyRef: {name: a, key: b, optional: 'yes'}"),
		want: blocked(`spec.v1beta2.env[0].valueFrom.configMapKeyRef.optional: Invalid value: "string": spec.v1beta2.env[0].valueFrom.configMapKeyRef.optional in body must be of type boolean: "string"`)},
	{what: "a Secret", change: inSource("secretKeyRef: {name: a, key: b, optional: false}")},
	{what: "a Secret without a name", change: inSource("secretKeyRef: {key: b}"), want: blocked("spec.v1beta2.env[0].valueFrom.secretKeyRef.name: Required value")},
	{what: "a Secret without a key", change: inSource("secretKeyRef: {name: a}"), want: blocked("spec.v1beta2.env[0].valueFrom.secretKeyRef.key: Required value")},
	{what: "a Secret of an empty name", change: inSource(`secretKeyRef: {name: "", key: b}`), want: short("spec.v1beta2.env[0].valueFrom.secretKeyRef.name")},
	{what: "a Secret and an empty key", change: inSource(`secretKeyRef: {name: a, key: ""}`), want: short("spec.v1beta2.env[0].valueFrom.secretKeyRef.key")},
	{what: "a file", change: inSource("fileKeyRef: {volumeName: a, path: b, key: c, optional: true}")},
	{what: "a file of no volume", change: inSource("fileKeyRef: {path: b, key: c}"), want: blocked("spec.v1beta2.env[0].valueFrom.fileKeyRef.volumeName: Required value")},
	{what: "a file without a path", change: inSource("fileKeyRef: {volumeName: a, key: c}"), want: blocked("spec.v1beta2.env[0].valueFrom.fileKeyRef.path: Required value")},
	{what: "a file without a key", change: inSource("fileKeyRef: {volumeName: a, path: b}"), want: blocked("spec.v1beta2.env[0].valueFrom.fileKeyRef.key: Required value")},
	{what: "a file of an empty volume", change: inSource(`fileKeyRef: {volumeName: "", path: b, key: c}`), want: short("spec.v1beta2.env[0].valueFrom.fileKeyRef.volumeName")},
	{what: "a file of an empty path", change: inSource(`fileKeyRef: {volumeName: a, path: "", key: c}`), want: short("spec.v1beta2.env[0].valueFrom.fileKeyRef.path")},
	{what: "a file and an empty key", change: inSource(`fileKeyRef: {volumeName: a, path: b, key: ""}`), want: short("spec.v1beta2.env[0].valueFrom.fileKeyRef.key")},
	{what: "500 variables", change: inV1beta2("env: [" + strings.TrimSuffix(strings.Repeat("{name: A}, ", 500), ", ") + "]")},
	{what: "501 variables", change: inV1beta2("env: [" + strings.TrimSuffix(strings.Repeat("{name: A}, ", 501), ", ") + "]"),
		want: blocked("spec.v1beta2.env: Too many: 501: must have at most 500 items")},
}

const divisor = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`

// short is the server's message about an empty text.
func short(path string) string {
	return path + `: Invalid value: "": ` + path + " in body should be at least 1 chars long"
}

func allCells() []cell {
	both := slices.Concat(ofPods, ofServices, ofBinds, ofVariables)
	cells := slices.Concat(ofVersions, ofNames, ofUpdates, ofRings, ofStorage, both)
	for _, c := range both {
		cells = append(cells, flat(c))
	}
	return cells
}

// flat is the cell for v1beta1, which has the fields directly in spec.
func flat(c cell) cell {
	below := strings.TrimSuffix(strings.TrimPrefix(c.change, "spec: {v1beta2: "), "}")
	return cell{"v1beta1, " + c.what, "spec: " + below, strings.ReplaceAll(c.want, "spec.v1beta2.", "spec."), true, c.differs}
}

// The server refuses an invalid Habitat at creation, with the field and the remedy. The
// controller reports the same for a Habitat that another definition let in.
func TestDefinitionOfHabitats(t *testing.T) {
	namespace := newNamespace(t)
	for _, c := range allCells() {
		t.Run(c.what, func(t *testing.T) {
			of := habitatOf(c.habitat(), c.change)
			_, err := dryCreation(t.Context(), administrator, namespace, of)
			checkReasons(t, err, c.want)
			var named []string
			_, mistakes := habitat.Parse(of.Object)
			for _, mistake := range mistakes {
				named = append(named, mistake.Field)
			}
			same := (len(mistakes) == 0) == (err == nil) && !slices.ContainsFunc(faulty(err), func(field string) bool { return !slices.Contains(named, field) })
			if same != (c.differs == "") {
				t.Errorf("the server says %q, and habitat.Parse names %v; that they differ (%q) is %t", reasons(err), named, c.differs, !same)
			}
		})
	}
}

// The server reports all mistakes at once, as far as it evaluates the rules.
func TestDefinitionSaysAll(t *testing.T) {
	_, err := dryCreation(t.Context(), administrator, newNamespace(t), habitatOf(v1beta2Habitat, `
metadata: {name: peers}
spec:
  v1beta2:
    count: -1
    image: ""
    env: [{name: "="}, {name: A, valueFrom: {}}]
    updateStrategy: OnDelete
    persistentStorage: {size: "0", mountPath: data, storageClassName: A}
    service: {name: /, group: "", channel: "", configSecretName: A, filesSecretName: A, ringSecretName: A, bind: [{name: "", service: "", group: ""}]}`))
	want := []string{
		"metadata.name", "spec.v1beta2.count", "spec.v1beta2.env[0].name", "spec.v1beta2.env[1].valueFrom", "spec.v1beta2.image",
		"spec.v1beta2.persistentStorage.mountPath", "spec.v1beta2.persistentStorage.size", "spec.v1beta2.persistentStorage.storageClassName",
		"spec.v1beta2.service.bind[0].group", "spec.v1beta2.service.bind[0].name", "spec.v1beta2.service.bind[0].service",
		"spec.v1beta2.service.channel", "spec.v1beta2.service.configSecretName", "spec.v1beta2.service.filesSecretName",
		"spec.v1beta2.service.group", "spec.v1beta2.service.name", "spec.v1beta2.service.ringSecretName", "spec.v1beta2.updateStrategy",
	}
	got := faulty(err)
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("the server names\n%v, want\n%v", got, want)
	}
}

// An absent custom version is stored as v1beta1, where users see it.
func TestAbsentVersionIsWrittenDown(t *testing.T) {
	resource := server.Dynamic.Resource(habitats).Namespace(newNamespace(t))
	stored, err := resource.Create(t.Context(), habitatOf(v1beta1Habitat, ""), metav1.CreateOptions{})
	kit.Must(t, err)
	if got := stored.Object["customVersion"]; got != habitat.V1beta1 {
		t.Errorf("customVersion is %v", got)
	}
}

// change is an update of a Habitat, and the definition's message.
type change struct {
	what                string
	of, stored, updated string
	want                string
}

var changes = []change{
	{"everything that can be", v1beta2Habitat, inStorage("storageClassName: a"), "spec: {v1beta2: {count: 3, image: b, env: [{name: A}], updateStrategy: OnDelete, service: {name: b, topology: leader, group: c}}}", ""},
	{"the labels", v1beta2Habitat, inStorage(""), "metadata: {labels: {a: b}}", ""},
	{"that there is a claim", v1beta2Habitat, "", inStorage(""), "spec.v1beta2.persistentStorage: Forbidden: " + sayClaims},
	{"that there is no claim", v1beta2Habitat, inStorage(""), inV1beta2("persistentStorage: null"), "spec.v1beta2.persistentStorage: Forbidden: " + sayClaims},
	{"the size", v1beta2Habitat, inStorage(""), inV1beta2("persistentStorage: {size: 2Gi}"), "spec.v1beta2.persistentStorage: Forbidden: " + sayClaims},
	{"the path", v1beta2Habitat, inStorage(""), inV1beta2("persistentStorage: {mountPath: /x}"), "spec.v1beta2.persistentStorage: Forbidden: " + sayClaims},
	{"the class", v1beta2Habitat, inStorage(""), inV1beta2("persistentStorage: {storageClassName: x}"), "spec.v1beta2.persistentStorage: Forbidden: " + sayClaims},
	{"v1beta1, absent, into v1beta1, said", v1beta1Habitat, "", "customVersion: v1beta1", ""},
	{"v1beta1, said, into v1beta1, empty", v1beta1Habitat, "customVersion: v1beta1", `customVersion: ""`, ""},
	{"v1beta1, empty, into v1beta1, absent", v1beta1Habitat, `customVersion: ""`, "customVersion: null", ""},
	{"v1beta2 into v1beta3", v1beta2Habitat, "", "customVersion: v1beta3", "customVersion: Forbidden: " + sayVersion},
	{"v1beta3 into v1beta2", v1beta2Habitat, "customVersion: v1beta3", "customVersion: v1beta2", "customVersion: Forbidden: " + sayVersion},
	{"v1beta3 into v1beta1, absent", v1beta1Habitat, "customVersion: v1beta3", "customVersion: null", "customVersion: Forbidden: " + sayVersion},
	{"v1beta1 into v1beta2, and all that goes with it", v1beta1Habitat, "", "{customVersion: v1beta2, spec: {image: null, service: null, v1beta2: {image: a, service: {name: a, topology: leader}}}}", "customVersion: Forbidden: " + sayVersion},
	{"v1beta2 into v1beta1, and all that goes with it", v1beta2Habitat, "", "{customVersion: null, spec: {v1beta2: null, image: a, service: {name: a, topology: leader}}}", "customVersion: Forbidden: " + sayVersion},
	{"the image of v1beta1 away", v1beta1Habitat, "", "spec: {image: null}", "spec.image: Required value: " + sayFlatImage},
	{"the service of v1beta1 away", v1beta1Habitat, "", "spec: {service: null}", "spec.service: Required value: " + sayFlatService},
	{"spec.v1beta2 away", v1beta2Habitat, "", "spec: {v1beta2: null}", "spec.v1beta2: Required value: " + sayBelow},
	{"spec.v1beta2 into v1beta1", v1beta1Habitat, "", "spec: {v1beta2: {image: a, service: {name: a, topology: leader}}}", "spec.v1beta2: Forbidden: " + sayFlat},
	{"a flat image into v1beta2", v1beta2Habitat, "", "spec: {image: a}", "spec: Forbidden: " + sayMove},
	{"a flat count into v1beta2", v1beta2Habitat, "", "spec: {count: 1}", "spec: Forbidden: " + sayMove},
}

// The server refuses changes of immutable fields, with the reason and the remedy.
func TestChangesOfHabitats(t *testing.T) {
	namespace := newNamespace(t)
	resource := mustHabitatsAs(t, namespaceEditor, namespace)
	await(t, namespaceEditor, "update", "habitat.sh", "habitats", namespace)
	for _, c := range changes {
		t.Run(c.what, func(t *testing.T) {
			stored, err := resource.Create(t.Context(), habitatOf(c.of, c.stored), metav1.CreateOptions{})
			kit.Must(t, err)
			stored.Object = merge(stored.Object, mustRead(c.updated))
			_, err = resource.Update(t.Context(), stored, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
			checkReasons(t, err, c.want)
			if err := resource.Delete(t.Context(), stored.GetName(), metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
}
