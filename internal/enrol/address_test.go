package enrol

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/krake-observer/krake-observer/test/check"
)

func TestAddressOf(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "ca.crt")
	check.Must(t, os.WriteFile(ca, []byte("authority"), 0o600))
	const hub = "https://10.0.0.1:6443"
	for _, c := range []struct {
		why    string
		config rest.Config
		server string
		want   address
		err    string
	}{
		{"as the administrator goes", rest.Config{Host: hub, TLSClientConfig: rest.TLSClientConfig{CAData: []byte("authority")}}, "",
			address{server: hub, ca: []byte("authority")}, ""},
		{"a file is read", rest.Config{Host: hub, TLSClientConfig: rest.TLSClientConfig{CAFile: ca}}, "",
			address{server: hub, ca: []byte("authority")}, ""},
		{"the certificate has another name", rest.Config{Host: hub, TLSClientConfig: rest.TLSClientConfig{ServerName: "hub"}}, "",
			address{server: hub, serverName: "hub"}, ""},
		{"another address has its own name", rest.Config{Host: hub, TLSClientConfig: rest.TLSClientConfig{ServerName: "hub"}}, "https://hub.example.org",
			address{server: "https://hub.example.org"}, ""},
		{"who is not verified gets no token", rest.Config{Host: hub, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, "",
			address{}, "does not verify"},
		{"nor does who can be read on the way", rest.Config{Host: "http://127.0.0.1:8001"}, "",
			address{}, "set another by --hub-server"},
		{"a file that is not there", rest.Config{Host: hub, TLSClientConfig: rest.TLSClientConfig{CAFile: ca + "x"}}, "",
			address{}, "certificate authority"},
	} {
		t.Run(c.why, func(t *testing.T) {
			got, err := addressOf(&c.config, c.server)
			check.Fails(t, "configuration", err, c.err)
			check.Equal(t, "address", c.want, got, cmp.AllowUnexported(address{}))
		})
	}
}

// The token is in a file of its own beside this one, wherever the folder is.
func TestKubeconfig(t *testing.T) {
	text, err := address{server: "https://hub", ca: []byte("authority")}.kubeconfig("east")
	check.Must(t, err)
	dir := t.TempDir()
	path := filepath.Join(dir, "kubeconfig")
	check.Must(t, os.WriteFile(path, text, 0o600))
	check.Must(t, os.WriteFile(filepath.Join(dir, "token"), []byte("secret"), 0o600))
	config, err := clientcmd.BuildConfigFromFlags("", path)
	check.Must(t, err)
	if config.Host != "https://hub" || config.BearerTokenFile != filepath.Join(dir, "token") || string(config.CAData) != "authority" {
		t.Errorf("%v", config)
	}
}
