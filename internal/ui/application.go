package ui

import (
	"net/http"
	"strconv"
)

func (s *Server) application(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	name := nameIn(query)
	number, _, _ := s.live.of(name) // before it is read, so that no change is lost
	found, err := s.source.Application(r.Context(), name)
	if err != nil {
		s.fail(w, "Application "+name.String(), err)
		return
	}
	events := "/application/events?" + queryOf(name).Encode() + "&since=" + strconv.Itoa(number)
	s.show(w, "application", "Application "+name.String(), events, struct {
		Application
		Timeline timeline
	}{found, zoomed(found, query.Get("zoom"), s.now())})
}
