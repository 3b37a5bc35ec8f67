package telemetry

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"strings"
)

// expiryOf returns when the token in a file expires, in seconds since 1970. It returns false if
// that is not known: there is no file, or its token is none of a ServiceAccount. The signature is
// the hub's to check.
func expiryOf(file string) (seconds float64, known bool) {
	token, err := os.ReadFile(file) //nolint:gosec // the file of the hub's kubeconfig
	if err != nil {
		return 0, false
	}
	parts := strings.Split(strings.TrimSpace(string(token)), ".")
	if len(parts) != 3 {
		return 0, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Expires float64 `json:"exp"`
	}
	if err != nil || json.Unmarshal(payload, &claims) != nil {
		return 0, false
	}
	return claims.Expires, claims.Expires > 0
}
