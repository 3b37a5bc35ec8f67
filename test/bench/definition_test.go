package bench

import (
	"strings"
	"testing"
)

// customResourceDefinition is the manifest of a large definition: sections with the
// same fields, each in several forms, as in generated definitions.
func customResourceDefinition(t testing.TB) object {
	t.Helper()
	definition := decoded(t, []byte(definitionText))
	sections := at(openAPISchema(definition), "properties", "spec", "properties")
	for name := range strings.FieldsSeq("backup cache connections encryption logging maintenance memory monitoring " +
		"network placement recovery replication roles storage tracing upgrade users") {
		text := strings.NewReplacer("NAME", name, "DEFAULT", "The default suits most installations.").Replace(sectionText)
		sections[name] = decoded(t, []byte(text))
	}
	return definition
}

// openAPISchema returns the schema of the definition's only version.
func openAPISchema(definition object) object {
	return at(at(definition, "spec")["versions"].([]any)[0].(object), "schema", "openAPIV3Schema")
}

const definitionText = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: databases.storage.example.org, labels: {app.kubernetes.io/part-of: storage}}
spec:
  group: storage.example.org
  names: {kind: Database, plural: databases, shortNames: [db]}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns: [{name: Ready, type: string, jsonPath: .status.ready}]
    schema:
      openAPIV3Schema:
        type: object
        description: A Database is a database with its replicas.
        required: [spec]
        properties:
          apiVersion: {type: string, description: The version of this representation.}
          kind: {type: string, description: The kind of this object.}
          metadata: {type: object}
          spec: {type: object, description: What is wanted., properties: {}}
          status:
            type: object
            description: What is.
            properties:
              ready: {type: string, description: Whether the database takes connections.}
`

// sectionText is a section of the schema. Its targets are a list with keys.
const sectionText = `type: object
description: The settings of the NAME. DEFAULT
required: [enabled, schedule]
properties:
  enabled: {type: boolean, description: The switch of the NAME. DEFAULT, default: true}
  schedule: {type: string, description: The schedule of the NAME. DEFAULT, minLength: 9, maxLength: 64, pattern: '^[0-9*/, -]+$'}
  mode: {type: string, description: The mode of the NAME. DEFAULT, default: Automatic, enum: [Automatic, Manual, "Off"]}
  instances: {type: integer, description: The number of the NAME. DEFAULT, format: int32, minimum: 0, maximum: 99, default: 1}
  timeout: {type: string, description: The timeout of the NAME. DEFAULT, format: duration, default: 30s}
  labels:
    type: object
    description: The labels of the NAME. DEFAULT
    additionalProperties: {type: string, maxLength: 63}
    maxProperties: 16
  limit:
    description: The limit of the NAME. DEFAULT
    x-kubernetes-int-or-string: true
    anyOf: [{type: integer}, {type: string}]
  targets:
    type: array
    description: The targets of the NAME. DEFAULT
    maxItems: 32
    x-kubernetes-list-type: map
    x-kubernetes-list-map-keys: [name]
    items:
      type: object
      required: [name]
      properties:
        name: {type: string, description: "The name, unique among the targets.", maxLength: 63}
        url: {type: string, description: Where it is reached., format: uri}
        port: {type: integer, description: "The port, if it is not the usual one.", format: int32, minimum: 1}
        secret: {type: string, description: The Secret with its credentials.}
  placement:
    type: object
    description: The placement of the NAME. DEFAULT
    properties:
      zone: {type: string, description: The zone of the nodes.}
      class: {type: string, description: The class of the nodes., enum: [Standard, Large]}
      nodes: {type: array, description: The names of the nodes., items: {type: string}}
      affinity:
        type: object
        description: What the nodes are shared with.
        properties:
          weight: {type: integer, description: How much that matters., format: int32}
          topic: {type: string, description: What it is about.}
`

// acceptance has the fields that a server adds to the definition.
const acceptance = `spec:
  conversion: {strategy: None}
  names: {listKind: DatabaseList, singular: database}
status:
  acceptedNames: {kind: Database, listKind: DatabaseList, plural: databases, singular: database, shortNames: [db]}
  storedVersions: [v1]
  conditions:
  - {type: NamesAccepted, status: "True", reason: NoConflicts, message: no conflicts found, lastTransitionTime: "2026-03-02T08:15:02Z"}
  - type: Established
    status: "True"
    reason: InitialNamesAccepted
    message: the initial names have been accepted
    lastTransitionTime: "2026-03-02T08:15:02Z"
`
