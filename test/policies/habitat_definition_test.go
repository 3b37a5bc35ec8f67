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

// cell is a Habitat of the table, and the fields that the definition refuses. The sessions
// of test/kubectl have its words.
type cell struct {
	what string
	// change is a merge patch of v1beta2Habitat, or of v1beta1Habitat if it sets
	// v1beta1.
	change  string
	field   string
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
	{what: "v1beta1, absent", v1beta1: true},
	{what: "v1beta1, said", change: "customVersion: v1beta1", v1beta1: true},
	{what: "v1beta3, which is told in the status", change: "{customVersion: v1beta3, spec: {v1beta2: null}}", differs: "it knows no such version"},
	{what: "a version of 64 characters", change: "customVersion: " + x(64), field: "customVersion"},
	{what: "no spec", change: "spec: null", field: "spec", differs: "it names spec.v1beta2"},
	{what: "v1beta2 without spec.v1beta2", change: "spec: {v1beta2: null}", field: "spec.v1beta2"},
	{what: "v1beta2 with a flat image", change: "spec: {image: x}", field: "spec", differs: "it names the field"},
	{what: "v1beta2 and all fields flat", change: "{customVersion: v1beta2}", v1beta1: true, field: "spec.v1beta2 spec", differs: "it names the fields"},
	{what: "v1beta1 with spec.v1beta2", change: "customVersion: v1beta1", field: "spec.v1beta2"},
	{what: "v1beta1 without an image", change: "spec: {image: null}", v1beta1: true, field: "spec.image"},
	{what: "v1beta1 without a service", change: "spec: {service: null}", v1beta1: true, field: "spec.service"},
	{what: "v1beta1 without a topology", change: "spec: {service: {topology: null}}", v1beta1: true, field: "spec.service.topology"},
	{what: "v1beta1 with empty fields, which are none", v1beta1: true, change: `spec: {service: {group: "", configSecretName: "", ringSecretName: ""}}`},
	{what: "v1beta1 with all fields", v1beta1: true, change: "spec: {count: 3, env: [{name: A}], service: {group: a, configSecretName: a, ringSecretName: a-20230101000000, bind: [{name: a, service: a, group: a}]}}"},
	{what: "v1beta1 with a group that is a flag", v1beta1: true, change: "spec: {service: {group: --org}}", field: "spec.service.group"},
	{what: "v1beta1 with a Secret that cannot be", v1beta1: true, change: "spec: {service: {configSecretName: A}}", field: "spec.service.configSecretName"},
	{what: "v1beta1 with a ring that cannot be", v1beta1: true, change: "spec: {service: {ringSecretName: ring}}", field: "spec.service.ringSecretName"},
	{what: "v1beta1 with a channel", v1beta1: true, change: "spec: {service: {channel: stable}}", field: unknown("spec.service.channel")},
	{what: "an unknown field", change: inV1beta2("replicas: 1"), field: unknown("spec.v1beta2.replicas")},
	{what: "an unknown field of a source", change: inSource("fieldRef: {fieldPath: a, path: b}"), field: unknown("spec.v1beta2.env[0].valueFrom.fieldRef.path")},
}

// unknown is the refusal of an unknown field: the server decodes no further.
func unknown(path string) string { return `strict decoding error: unknown field "` + path + `"` }

// checkRefused fails unless the server refuses these fields, separated by blanks, and no other.
func checkRefused(t *testing.T, err error, want string) {
	t.Helper()
	if strings.HasPrefix(want, "strict decoding error") {
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("the server says %v, want %s", err, want)
		}
		return
	}
	if got := faulty(err); strings.Join(got, " ") != want || (err == nil) != (want == "") {
		t.Errorf("the server refuses %v, want %q: %v", got, want, err)
	}
}

// ofNames: the name of a Habitat is part of other names.
var ofNames = []cell{
	{what: "a name of 52 characters", change: "metadata: {name: " + x(52) + "}"},
	{what: "a name of 53 characters", change: "metadata: {name: " + x(53) + "}", field: "metadata.name"},
	{what: "a name with a dot", change: "metadata: {name: a.b}", field: "metadata.name"},
	{what: "peers", change: "metadata: {name: peers}", field: "metadata.name"},
}

// ofPods: what to run, and how many replicas. Both versions have these fields.
var ofPods = []cell{
	{what: "no count, which is none", change: inV1beta2("count: null")},
	{what: "count 0", change: inV1beta2("count: 0")},
	{what: "more than that", change: inV1beta2("count: 2147483648"), field: "spec.v1beta2.count"},
	{what: "count -1", change: inV1beta2("count: -1"), field: "spec.v1beta2.count"},
	{what: "count two", change: inV1beta2("count: two"), field: "spec.v1beta2.count"},
	{what: "an empty image", change: inV1beta2(`image: ""`), field: "spec.v1beta2.image"},
	{what: "a leader alone", change: inV1beta2("count: 1, service: {topology: leader}")},
	{what: "an image with a blank", change: inV1beta2(`image: "a b"`), field: "spec.v1beta2.image"},
	{what: "an image with a next line", change: inV1beta2(`image: "a\N"`), field: "spec.v1beta2.image"},
}

// ofUpdates: how Pods are replaced.
var ofUpdates = []cell{
	{what: "no image", change: inV1beta2("image: null"), field: "spec.v1beta2.image"},
	{what: "OnDelete of a leader", change: inV1beta2("updateStrategy: OnDelete, service: {topology: leader}")},
	{what: "OnDelete of others", change: inV1beta2("updateStrategy: OnDelete"), field: "spec.v1beta2.updateStrategy"},
	{what: "an update strategy that there is not", change: inV1beta2("updateStrategy: Recreate"), field: "spec.v1beta2.updateStrategy"},
}

// ofServices: the service. Both versions have its fields.
var ofServices = []cell{
	{what: "no topology", change: inService("topology: null"), field: "spec.v1beta2.service.topology"},
	{what: "topology ring", change: inService("topology: ring"), field: "spec.v1beta2.service.topology"},
	{what: "no name", change: inService("name: null"), field: "spec.v1beta2.service.name"},
	{what: "an empty name", change: inService(`name: ""`), field: "spec.v1beta2.service.name"},
	{what: "a name with all that it may have", change: inService("name: A_b.c-9")},
	{what: "a name that a shell reads otherwise", change: inService(`name: "a;b"`), field: "spec.v1beta2.service.name"},
	{what: "a name that is the folder above", change: inService(`name: ".."`), field: "spec.v1beta2.service.name"},
}

// ofRings: the ring of the service, and its configuration.
var ofRings = []cell{
	{what: "no service", change: inV1beta2("service: null"), field: "spec.v1beta2.service"},
	{what: "a group and a channel", change: inService("group: blue, channel: unstable")},
	{what: "an empty group", change: inService(`group: ""`), field: "spec.v1beta2.service.group"},
	{what: "a group that is a flag", change: inService("group: --org"), field: "spec.v1beta2.service.group"},
	{what: "a channel with a tab", change: inService(`channel: "a\tb"`), field: "spec.v1beta2.service.channel"},
	{what: "a group of 254 characters", change: inService("group: " + x(254)), field: "spec.v1beta2.service.group"},

	{what: "Secrets", change: inService("configSecretName: a.b-c, filesSecretName: d")},
	{what: "no name of a Secret with user.toml", change: inService(`configSecretName: ""`), field: "spec.v1beta2.service.configSecretName"},
	{what: "a Secret in capitals", change: inService("configSecretName: A"), field: "spec.v1beta2.service.configSecretName"},
	{what: "a Secret that ends with a dot", change: inService("filesSecretName: a."), field: "spec.v1beta2.service.filesSecretName"},

	{what: "a ring", change: inService("ringSecretName: a-b-c-20230101000000")},
	{what: "a ring without a time", change: inService("ringSecretName: ringkey"), field: "spec.v1beta2.service.ringSecretName"},
	{what: "a ring with 15 digits", change: inService("ringSecretName: a-202301010000001"), field: "spec.v1beta2.service.ringSecretName"},
	{what: "a ring of 63 characters", change: inService("ringSecretName: " + x(48) + "-20230101000000")},
	{what: "a ring of 64 characters", change: inService("ringSecretName: " + x(49) + "-20230101000000"), field: "spec.v1beta2.service.ringSecretName"},
}

// ofBinds: the services that it uses. Both versions have these fields.
var ofBinds = []cell{
	{what: "a bind", change: inBind("")},
	{what: "a bind without a name", change: inService("bind: [{service: pg, group: default}]"), field: "spec.v1beta2.service.bind[0].name"},
	{what: "a bind without a group", change: inService("bind: [{name: db, service: pg}]"), field: "spec.v1beta2.service.bind[0].group"},
	{what: "a bind with a colon", change: inBind(`name: "a:b"`), field: "spec.v1beta2.service.bind[0].name"},
	{what: "a bind with dots and hyphens", change: inBind("name: a.b-c, service: -pg, group: -x")},
	{what: "a bind of a service with a dot", change: inBind("service: p.g"), field: "spec.v1beta2.service.bind[0].service"},
	{what: "a bind of a group with a dot", change: inBind("group: a.b"), field: "spec.v1beta2.service.bind[0].group"},
	{what: "two binds of one name", change: inService("bind: [{name: a, service: pg, group: default}, {name: a, service: my, group: default}]"), field: "spec.v1beta2.service.bind[1]", differs: "it names the field name of the bind"},
	{what: "101 binds", change: inService("bind: [" + binds(101) + "]"), field: "spec.v1beta2.service.bind"},
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
	{what: "a claim without a size", change: inV1beta2("persistentStorage: {mountPath: /data}"), field: "spec.v1beta2.persistentStorage.size"},
	{what: "a claim without a path", change: inV1beta2("persistentStorage: {size: 1Gi}"), field: "spec.v1beta2.persistentStorage.mountPath"},
	{what: "10 gigs", change: inStorage("size: 10 gigs"), field: "spec.v1beta2.persistentStorage.size"},
	{what: "nothing", change: inStorage(`size: "0"`), field: "spec.v1beta2.persistentStorage.size"},
	{what: "a size in another writing", change: inStorage(`size: "1.5e3"`)},
	{what: "the largest size", change: inStorage("size: 4Ei")},
	{what: "a larger one", change: inStorage("size: 4.1Ei"), field: "spec.v1beta2.persistentStorage.size"},
	{what: "one that would be cut", change: inStorage("size: 1000E"), field: "spec.v1beta2.persistentStorage.size"},

	{what: "a relative path", change: inStorage("mountPath: data"), field: "spec.v1beta2.persistentStorage.mountPath"},
	{what: "a path with a colon", change: inStorage(`mountPath: "/a:b"`), field: "spec.v1beta2.persistentStorage.mountPath"},
	{what: "the whole file system", change: inStorage("mountPath: /"), field: "spec.v1beta2.persistentStorage.mountPath"},
	{what: "a path that goes back", change: inStorage("mountPath: /data/.."), field: "spec.v1beta2.persistentStorage.mountPath"},
	{what: "the folder of the peer file", change: inStorage("mountPath: /habitat-operator"), field: "spec.v1beta2.persistentStorage.mountPath"},
	{what: "the folder of the keys", change: inStorage("mountPath: /hab/cache/keys"), field: "spec.v1beta2.persistentStorage.mountPath"},
	{what: "the folder of user.toml", change: inStorage("mountPath: /hab/user/shop/config"), field: "spec.v1beta2.persistentStorage.mountPath"},
	{what: "the folder of files", change: inStorage("mountPath: /hab/svc/shop/files"), field: "spec.v1beta2.persistentStorage.mountPath"},
	{what: "the folder of another service's files", change: inStorage("mountPath: /hab/svc/other/files")},
	{what: "the folder of data", change: inStorage("mountPath: /hab/svc/shop/data")},

	{what: "a class", change: inStorage("storageClassName: fast.disk-1")},
	{what: "no class", change: inStorage(`storageClassName: ""`)},
	{what: "a class that cannot be", change: inStorage("storageClassName: Fast Disk"), field: "spec.v1beta2.persistentStorage.storageClassName"},
}

// ofVariables: the variables of the Pods. Both versions have them.
var ofVariables = []cell{
	{what: "a variable", change: inEnv("name: A, value: b")},
	{what: "a variable without a name", change: inEnv("value: b"), field: "spec.v1beta2.env[0].name"},
	{what: "a variable with =", change: inEnv("name: A=B"), field: "spec.v1beta2.env[0].name"},
	{what: "a value beside a source", change: inEnv("name: A, value: a, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}"), field: "spec.v1beta2.env[0].valueFrom"},
	{what: "no source", change: inSource(""), field: "spec.v1beta2.env[0].valueFrom"},
	{what: "two sources", change: inSource("fieldRef: {fieldPath: spec.nodeName}, resourceFieldRef: {resource: limits.cpu}"), field: "spec.v1beta2.env[0].valueFrom"},
	{what: "a field", change: inSource("fieldRef: {apiVersion: v1, fieldPath: status.podIP}")},
	{what: "a field without a path", change: inSource("fieldRef: {apiVersion: v1}"), field: "spec.v1beta2.env[0].valueFrom.fieldRef.fieldPath"},
	{what: "a resource", change: inSource("resourceFieldRef: {containerName: a, resource: limits.memory, divisor: 1Mi}")},
	{what: "a resource divided by a word", change: inSource("resourceFieldRef: {resource: limits.memory, divisor: a}"), field: "spec.v1beta2.env[0].valueFrom.resourceFieldRef.divisor"},
	{what: "no resource", change: inSource("resourceFieldRef: {containerName: a}"), field: "spec.v1beta2.env[0].valueFrom.resourceFieldRef.resource"},
	{what: "a ConfigMap", change: inSource("configMapKeyRef: {name: a, key: b, optional: true}")},
	{what: "a ConfigMap without a name", change: inSource("configMapKeyRef: {key: b}"), field: "spec.v1beta2.env[0].valueFrom.configMapKeyRef.name"},
	{what: "a ConfigMap without a key", change: inSource("configMapKeyRef: {name: a}"), field: "spec.v1beta2.env[0].valueFrom.configMapKeyRef.key"},
	{what: "a Secret", change: inSource("secretKeyRef: {name: a, key: b, optional: false}")},
	{what: "a Secret without a name", change: inSource("secretKeyRef: {key: b}"), field: "spec.v1beta2.env[0].valueFrom.secretKeyRef.name"},
	{what: "a Secret without a key", change: inSource("secretKeyRef: {name: a}"), field: "spec.v1beta2.env[0].valueFrom.secretKeyRef.key"},
	{what: "a file", change: inSource("fileKeyRef: {volumeName: a, path: b, key: c, optional: true}")},
	{what: "a file without a path", change: inSource("fileKeyRef: {volumeName: a, key: c}"), field: "spec.v1beta2.env[0].valueFrom.fileKeyRef.path"},
	{what: "a file without a key", change: inSource("fileKeyRef: {volumeName: a, path: b}"), field: "spec.v1beta2.env[0].valueFrom.fileKeyRef.key"},
	{what: "501 variables", change: inV1beta2("env: [" + strings.TrimSuffix(strings.Repeat("{name: A}, ", 501), ", ") + "]"), field: "spec.v1beta2.env"},
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
	return cell{"v1beta1, " + c.what, "spec: " + below, strings.ReplaceAll(c.field, "spec.v1beta2.", "spec."), true, c.differs}
}

// The server refuses an invalid Habitat at creation, and names the field. The
// controller reports the same for a Habitat that another definition let in.
func TestDefinitionOfHabitats(t *testing.T) {
	namespace := newNamespace(t)
	for _, c := range allCells() {
		t.Run(c.what, func(t *testing.T) {
			of := habitatOf(c.habitat(), c.change)
			_, err := dryCreation(t.Context(), administrator, namespace, of)
			checkRefused(t, err, c.field)
			var named []string
			_, mistakes := habitat.Parse(of.Object)
			for _, mistake := range mistakes {
				named = append(named, mistake.Field)
			}
			same := (len(mistakes) == 0) == (err == nil) && !slices.ContainsFunc(faulty(err), func(field string) bool { return !slices.Contains(named, field) })
			if same != (c.differs == "") {
				t.Errorf("the server says %v, and habitat.Parse names %v; that they differ (%q) is %t", err, named, c.differs, !same)
			}
		})
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

// change is an update of a Habitat, and the field that the definition refuses.
type change struct {
	what                string
	of, stored, updated string
	field               string
}

var changes = []change{
	{"everything that can be", v1beta2Habitat, inStorage("storageClassName: a"), "spec: {v1beta2: {count: 3, image: b, env: [{name: A}], updateStrategy: OnDelete, service: {name: b, topology: leader, group: c}}}", ""},
	{"that there is a claim", v1beta2Habitat, "", inStorage(""), "spec.v1beta2.persistentStorage"},
	{"that there is no claim", v1beta2Habitat, inStorage(""), inV1beta2("persistentStorage: null"), "spec.v1beta2.persistentStorage"},
	{"the size", v1beta2Habitat, inStorage(""), inV1beta2("persistentStorage: {size: 2Gi}"), "spec.v1beta2.persistentStorage"},
	{"v1beta1, absent, into v1beta1, said", v1beta1Habitat, "", "customVersion: v1beta1", ""},
	{"v1beta1, said, into v1beta1, empty", v1beta1Habitat, "customVersion: v1beta1", `customVersion: ""`, ""},
	{"v1beta2 into v1beta3", v1beta2Habitat, "", "customVersion: v1beta3", "customVersion"},
	{"v1beta1 into v1beta2, and all that goes with it", v1beta1Habitat, "", "{customVersion: v1beta2, spec: {image: null, service: null, v1beta2: {image: a, service: {name: a, topology: leader}}}}", "customVersion"},
	{"v1beta2 into v1beta1, and all that goes with it", v1beta2Habitat, "", "{customVersion: null, spec: {v1beta2: null, image: a, service: {name: a, topology: leader}}}", "customVersion"},
	{"the image of v1beta1 away", v1beta1Habitat, "", "spec: {image: null}", "spec.image"},
	{"spec.v1beta2 away", v1beta2Habitat, "", "spec: {v1beta2: null}", "spec.v1beta2"},
	{"spec.v1beta2 into v1beta1", v1beta1Habitat, "", "spec: {v1beta2: {image: a, service: {name: a, topology: leader}}}", "spec.v1beta2"},
	{"a flat image into v1beta2", v1beta2Habitat, "", "spec: {image: a}", "spec"},
}

// The server refuses changes of immutable fields, and names the field.
func TestChangesOfHabitats(t *testing.T) {
	namespace := newNamespace(t)
	resource := namespaceEditor.mustClient(t).dynamic.Resource(habitats).Namespace(namespace)
	await(t, namespaceEditor, "update", "habitat.sh", "habitats", namespace)
	for _, c := range changes {
		t.Run(c.what, func(t *testing.T) {
			stored, err := resource.Create(t.Context(), habitatOf(c.of, c.stored), metav1.CreateOptions{})
			kit.Must(t, err)
			stored.Object = merge(stored.Object, mustRead(c.updated))
			_, err = resource.Update(t.Context(), stored, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
			checkRefused(t, err, c.field)
			if err := resource.Delete(t.Context(), stored.GetName(), metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
}
