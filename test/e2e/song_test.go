package e2e

// musicKinds defines the kinds of the example in Krake's documentation of the Application Observer, and the agent's
// rights on them.
const musicKinds = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: songs.music.example.com}
spec:
  group: music.example.com
  names: {kind: Song, listKind: SongList, plural: songs, singular: song}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              key1: {type: string}
              key2: {type: string}
              key3: {type: string, default: kilestlai}
              rythms: {type: array, items: {type: string}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: artists.music.example.com}
spec:
  group: music.example.com
  names: {kind: Artist, listKind: ArtistList, plural: artists, singular: artist}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              birth: {type: integer}
              death: {type: integer}
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
