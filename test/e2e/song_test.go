package e2e

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/krake-observer/krake-observer/test/kit"
)

// musicKinds defines the kinds of the example in Krake's documentation of the Application Observer, and the agent's
// rights on them.
var musicKinds = kit.Definition("music.example.com", "Song", `{type: object, properties: {spec: {type: object, properties: {
      key1: {type: string}, key2: {type: string}, key3: {type: string, default: kilestlai}, rythms: {type: array, items: {type: string}}}}}}`) + "---" +
	kit.Definition("music.example.com", "Artist", `{type: object, properties: {spec: {type: object, properties: {birth: {type: integer}, death: {type: integer}}}}}`) + `
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: krake-agent-music
  labels: {krake.dev/aggregate-to-agent: "true"}
rules:
- apiGroups: [music.example.com]
  resources: [songs, artists]
  verbs: [get, list, watch, create, patch, delete]
`

const (
	songManifest = `
apiVersion: music.example.com/v1
kind: Song
metadata: {name: top50}
spec: {key1: kilestbo, key2: lelavabo, rythms: [bubam, badum]}
---
apiVersion: music.example.com/v1
kind: Artist
metadata: {name: gainsbourg}
spec: {birth: 1928, death: 1991}
`
	songSchema = `
apiVersion: music.example.com/v1
kind: Song
metadata: {name: top50}
spec:
  key1: null
  key3: null
  rythms: [null, {observer_schema_list_min_length: 1, observer_schema_list_max_length: 2}]
`
)

// newSong creates the Application of that example.
func newSong(t *testing.T) (namespace string) {
	t.Helper()
	hub.Make(t, "", musicKinds)
	namespace = newNamespace(t)
	createApplication(t, namespace, "music", songManifest, songSchema)
	eventuallyState(t, "RUNNING", namespace, "music")
	return namespace
}

// The documents of the example equal those of Krake's documentation after the first
// reconciliation.
func TestSongDocuments(t *testing.T) {
	namespace := newSong(t)
	want := map[string]string{
		"status.mangled_observer_schema": `
- apiVersion: music.example.com/v1
  kind: Song
  metadata: {name: top50}
  spec: {key1: null, key3: null, rythms: [null, {observer_schema_list_min_length: 1, observer_schema_list_max_length: 2}]}
- apiVersion: music.example.com/v1
  kind: Artist
  metadata: {name: gainsbourg}
  spec: {birth: null, death: null}
`,
		"status.last_applied_manifest": `
- apiVersion: music.example.com/v1
  kind: Song
  metadata: {name: top50}
  spec: {key1: kilestbo, key2: lelavabo, key3: kilestlai, rythms: [bubam, badum]}
- apiVersion: music.example.com/v1
  kind: Artist
  metadata: {name: gainsbourg}
  spec: {birth: 1928, death: 1991}
`,
		"status.last_observed_manifest": `
- apiVersion: music.example.com/v1
  kind: Song
  metadata: {name: top50}
  spec: {key1: kilestbo, key3: kilestlai, rythms: [bubam, {observer_schema_list_current_length: 2}]}
- apiVersion: music.example.com/v1
  kind: Artist
  metadata: {name: gainsbourg}
  spec: {birth: 1928, death: 1991}
`,
	}
	for key, text := range want {
		if diff := cmp.Diff(parse(t, text), document(t, namespace, "music", key)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}
}
