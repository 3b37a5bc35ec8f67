package ui

import (
	"net/http"
	"strings"
)

// beforeContent is a form, and what would happen to each object.
type beforeContent struct {
	Name, Manifest string
	Said           []string
	Problem        error
	Parts          []beforePart
}

type beforePart struct {
	ForecastPart

	Lens lensContent
}

// before shows what would happen if a manifest were applied.
func (s *Server) before(w http.ResponseWriter, r *http.Request) {
	const title = "Before you apply"
	var content beforeContent
	if r.Method == http.MethodPost {
		if err := r.ParseForm(); err != nil {
			s.fail(w, title, err)
			return
		}
		content.Name, content.Manifest = r.PostForm.Get("name"), strings.ReplaceAll(r.PostForm.Get("manifest"), "\r\n", "\n")
	}
	if strings.TrimSpace(content.Manifest) != "" {
		found, err := s.source.Forecast(r.Context(), content.Name, content.Manifest)
		content.Said, content.Problem = found.Said, err
		if err != nil {
			found.Parts = nil
		}
		for _, part := range found.Parts {
			content.Parts = append(content.Parts, beforePart{part, lensOf(part.Lines, nil)})
		}
	}
	s.show(w, "before", title, "", content)
}
