package view

import (
	"strings"

	"github.com/krake-observer/krake-observer/internal/blame"
	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// ObjectText returns "Deployment/web", and "Deployment/web in other" of another namespace.
func ObjectText(id manifest.ID, home string) string {
	text := id.Kind + "/" + id.Name
	if id.Namespace != "" && id.Namespace != home {
		text += " in " + id.Namespace
	}
	return text
}

// WriterOf returns the field manager that changed the object.
func WriterOf(drift application.Drift) string {
	return blame.Culprit{Manager: drift.Manager, Subresource: drift.Subresource}.Name()
}

// RepairedCell returns "reverted in 12ms", "recreated", and "no".
func RepairedCell(drift application.Drift) env.Cell {
	if drift.Repaired == "" {
		return env.Cell{Text: "no", Colour: env.Yellow}
	}
	text := strings.ToLower(strings.TrimPrefix(drift.Repaired, "Drift"))
	if drift.After != nil {
		text += " in " + env.Shortly(drift.After.Duration)
	}
	return env.Cell{Text: text, Colour: env.Green}
}

// FieldsText returns "spec.replicas: 2 -> 5": the desired value before the live one.
func FieldsText(drift application.Drift) string {
	if len(drift.Fields) == 0 {
		return "(the object itself was gone)"
	}
	texts := make([]string, 0, len(drift.Fields))
	for _, field := range drift.Fields {
		text := field.Path
		if field.Removed {
			texts = append(texts, text+": removed, because it cannot stand beside a desired value")
			continue
		}
		if field.Want != nil || field.Have != nil {
			text += ": " + lens.PlainText(field.Want) + " -> " + lens.PlainText(field.Have)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}
