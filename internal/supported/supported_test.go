package supported

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/test/check"
)

// Only a server that says an old version is refused.
func TestCheckServer(t *testing.T) {
	for answer, refused := range map[string]bool{
		`{"major": "1", "minor": "32", "gitVersion": "v1.32.9"}`:        true,
		`{"major": "1", "minor": "32+", "gitVersion": "v1.32.9-eks-1"}`: true,
		`{"major": "1", "minor": "33", "gitVersion": "v1.33.0"}`:        false,
		`{"major": "1", "minor": "40", "gitVersion": "v1.40.1+k3s1"}`:   false,
		`{"major": "2", "minor": "0", "gitVersion": "v2.0.0"}`:          false,
		`{"gitVersion": "unknown"}`:                                     false,
		``:                                                              false,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if answer == "" || r.URL.Path != "/version" {
				http.Error(w, "no", http.StatusForbidden)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			if _, err := fmt.Fprint(w, answer); err != nil {
				t.Error(err)
			}
		}))
		err := CheckServer(&rest.Config{Host: server.URL})
		server.Close()
		if !refused {
			check.Must(t, err)
			continue
		}
		check.Fails(t, answer, err, "which is not supported: upgrade it to 1.33 or later")
	}
}
