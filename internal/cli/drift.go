package cli

import (
	"strings"

	"github.com/krake-observer/krake-observer/internal/blame"
	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// objectText returns "Deployment/web", and "Deployment/web in other" of another namespace.
func objectText(id manifest.ID, home string) string {
	text := id.Kind + "/" + id.Name
	if id.Namespace != "" && id.Namespace != home {
		text += " in " + id.Namespace
	}
	return text
}

func byWhom(drift application.Drift) string {
	return blame.Culprit{Manager: drift.Manager, Subresource: drift.Subresource}.Name()
}

// repairedCell returns "reverted in 12ms", "recreated", and "no".
func repairedCell(drift application.Drift) cell {
	if drift.Repaired == "" {
		return cell{"no", yellow}
	}
	text := strings.ToLower(strings.TrimPrefix(drift.Repaired, "Drift"))
	if drift.After != nil {
		text += " in " + shortly(drift.After.Duration)
	}
	return cell{text, green}
}

// fieldsText returns "spec.replicas: 2 -> 5": the desired value before the live one.
func fieldsText(drift application.Drift) string {
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
