package bench

import (
	"fmt"
	"maps"
	"strings"
)

const resourceName = "databases.storage.example.org"

// customResourceDefinition gives the manifest of a large definition: sections
// of the same fields, each in several forms, as generated ones look.
func customResourceDefinition() object {
	return object{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   object{"name": resourceName, "labels": object{"app.kubernetes.io/part-of": "storage"}},
		"spec": object{
			"group": "storage.example.org",
			"names": object{"kind": "Database", "plural": "databases", "shortNames": []any{"db"}},
			"scope": "Namespaced",
			"versions": []any{object{
				"name": "v1", "served": true, "storage": true,
				"schema":       object{"openAPIV3Schema": rootSchema()},
				"subresources": object{"status": object{}},
				"additionalPrinterColumns": []any{
					object{"name": "Ready", "type": "string", "jsonPath": ".status.ready"},
				},
			}},
		},
	}
}

// acceptance is what a server adds to the definition.
func acceptance() object {
	names := object{
		"kind": "Database", "listKind": "DatabaseList", "plural": "databases", "singular": "database", "shortNames": []any{"db"},
	}
	return object{
		"spec": object{
			"conversion": object{"strategy": "None"},
			"names":      object{"listKind": "DatabaseList", "singular": "database"},
		},
		"status": object{
			"acceptedNames":  names,
			"storedVersions": []any{"v1"},
			"conditions": []any{
				condition("NamesAccepted", "NoConflicts", "no conflicts found"),
				condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
			},
		},
	}
}

func condition(name, reason, message string) object {
	return object{
		"type": name, "status": "True", "reason": reason, "message": message, "lastTransitionTime": "2026-03-02T08:15:02Z",
	}
}

// openAPISchema is the schema that the definition has for its only version.
func openAPISchema(definition object) object {
	return at(at(definition, "spec")["versions"].([]any)[0].(object), "schema", "openAPIV3Schema")
}

func rootSchema() object {
	sections := object{}
	for name := range strings.FieldsSeq("backup cache connections encryption logging maintenance memory monitoring " +
		"network placement recovery replication roles storage tracing upgrade users") {
		sections[name] = section(name)
	}
	return typeOf("object", "A Database is a database with its replicas.", object{
		"required": []any{"spec"},
		"properties": object{
			"apiVersion": typeOf("string", "The version of this representation.", nil),
			"kind":       typeOf("string", "The kind of this object.", nil),
			"metadata":   object{"type": "object"},
			"spec":       typeOf("object", "What is wanted.", object{"properties": sections}),
			"status": typeOf("object", "What is.", object{"properties": object{
				"ready": typeOf("string", "Whether the database takes connections.", nil),
			}}),
		},
	})
}

func section(name string) object {
	about := func(field string) string {
		return fmt.Sprintf("The %s of the %s. The default suits most installations.", field, name)
	}
	return typeOf("object", about("settings"), object{
		"required": []any{"enabled", "schedule"},
		"properties": object{
			"enabled": typeOf("boolean", about("switch"), object{"default": true}),
			"schedule": typeOf("string", about("schedule"), object{
				"minLength": int64(9), "maxLength": int64(64), "pattern": `^[0-9*/, -]+$`,
			}),
			"mode": typeOf("string", about("mode"), object{
				"default": "Automatic", "enum": []any{"Automatic", "Manual", "Off"},
			}),
			"instances": typeOf("integer", about("number"), object{
				"format": "int32", "minimum": int64(0), "maximum": int64(99), "default": int64(1),
			}),
			"timeout": typeOf("string", about("timeout"), object{"format": "duration", "default": "30s"}),
			"labels": typeOf("object", about("labels"), object{
				"additionalProperties": object{"type": "string", "maxLength": int64(63)}, "maxProperties": int64(16),
			}),
			"limit": object{
				"description": about("limit"), "x-kubernetes-int-or-string": true,
				"anyOf": []any{object{"type": "integer"}, object{"type": "string"}},
			},
			"targets":   targets(about("targets")),
			"placement": placement(about("placement")),
		},
	})
}

// targets is a list whose elements have keys.
func targets(description string) object {
	return typeOf("array", description, object{
		"maxItems":                   int64(32),
		"x-kubernetes-list-type":     "map",
		"x-kubernetes-list-map-keys": []any{"name"},
		"items": object{
			"type":     "object",
			"required": []any{"name"},
			"properties": object{
				"name":   typeOf("string", "The name, unique among the targets.", object{"maxLength": int64(63)}),
				"url":    typeOf("string", "Where it is reached.", object{"format": "uri"}),
				"port":   typeOf("integer", "The port, if it is not the usual one.", object{"format": "int32", "minimum": int64(1)}),
				"secret": typeOf("string", "The Secret with its credentials.", nil),
			},
		},
	})
}

func placement(description string) object {
	return typeOf("object", description, object{"properties": object{
		"zone":  typeOf("string", "The zone of the nodes.", nil),
		"class": typeOf("string", "The class of the nodes.", object{"enum": []any{"Standard", "Large"}}),
		"nodes": typeOf("array", "The names of the nodes.", object{"items": object{"type": "string"}}),
		"affinity": typeOf("object", "What the nodes are shared with.", object{"properties": object{
			"weight": typeOf("integer", "How much that matters.", object{"format": "int32"}),
			"topic":  typeOf("string", "What it is about.", nil),
		}}),
	}})
}

// typeOf gives the schema of a field: its type and description, and further keywords.
func typeOf(name, description string, keywords object) object {
	schema := object{"type": name, "description": description}
	maps.Copy(schema, keywords)
	return schema
}
