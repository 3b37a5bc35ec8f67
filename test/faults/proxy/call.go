package proxy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Call is a request of the client.
type Call struct {
	// Number numbers the calls from 1; 0 if the call is not numbered.
	Number int
	// Verb is the verb of RBAC: get, list, watch, create, update, patch, delete.
	Verb string
	// Resource is empty for a request without a resource, such as discovery.
	Resource, Subresource string
	Namespace, Name       string
	// URI is the path with the query.
	URI string
	At  time.Time
	// Body is the request's body, except for a watch.
	Body []byte
	// Code is the API server's status code: 0 until it answers, and always 0 if the
	// call was not sent.
	Code int
	// Faulty: the call met a fault.
	Faulty bool
}

// IsWrite reports whether the call asks for a change.
func (c Call) IsWrite() bool {
	switch c.Verb {
	case "create", "update", "patch", "delete":
		return c.Resource != ""
	}
	return false
}

// IsEvent reports whether the call writes an Event.
func (c Call) IsEvent() bool { return c.Resource == "events" }

// IsDiscovery reports whether the call asks which resources are served.
func (c Call) IsDiscovery() bool { return c.Resource == "" }

// IsSight reports whether the call watches or lists a whole kind.
func (c Call) IsSight() bool { return c.Verb == "watch" || c.Verb == "list" }

// Subject returns the name of the object, which may be only in the body.
func (c Call) Subject() string {
	if c.Name != "" || c.Verb != "create" {
		return c.Name
	}
	var body struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if json.Unmarshal(c.Body, &body) != nil {
		return ""
	}
	return body.Metadata.Name
}

func (c Call) numbered() bool { return !c.IsSight() && !c.IsEvent() && !c.IsDiscovery() }

// String returns "#3 patch configmaps demo/web -> 200".
func (c Call) String() string {
	subject := c.Resource
	if c.Subresource != "" {
		subject += "/" + c.Subresource
	}
	if c.Resource == "" {
		subject = c.URI
	}
	text := fmt.Sprintf("#%d %s %s %s/%s -> %d", c.Number, c.Verb, subject, c.Namespace, c.Name, c.Code)
	if c.Faulty {
		text += " (fault)"
	}
	return text
}

// callOf parses the path of a request.
func callOf(r *http.Request, at time.Time) Call {
	call := Call{URI: r.URL.RequestURI(), At: at, Verb: strings.ToLower(r.Method)}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		parts = parts[3:]
	default:
		return call
	}
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		call.Namespace, parts = parts[1], parts[2:]
	}
	parts = append(parts, "", "")
	call.Resource, call.Name, call.Subresource = parts[0], parts[1], parts[2]
	call.Verb = verbOf(r, call.Name)
	return call
}

func verbOf(r *http.Request, name string) string {
	switch watch := r.URL.Query().Get("watch"); {
	case watch == "true" || watch == "1":
		return "watch"
	case r.Method == http.MethodGet && name == "":
		return "list"
	case r.Method == http.MethodPost:
		return "create"
	case r.Method == http.MethodPut:
		return "update"
	}
	return strings.ToLower(r.Method)
}
