package options

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/krake-observer/krake-observer/test/check"
)

func parse(t *testing.T, arguments ...string) (Connection, Logging) {
	t.Helper()
	var connection Connection
	var logging Logging
	flags := pflag.NewFlagSet("command", pflag.ContinueOnError)
	connection.AddFlags(flags)
	logging.AddFlags(flags)
	check.Must(t, flags.Parse(arguments))
	return connection, logging
}

func TestLoggingValidate(t *testing.T) {
	for _, c := range []struct {
		name      string
		arguments []string
		want      string
	}{
		{"the defaults can be used", nil, ""},
		{"each level", []string{"--log-level=debug"}, ""},
		{"in capitals, as logs show it", []string{"--log-level=WARN"}, ""},
		{"text is for people", []string{"--log-format=text"}, ""},
		{"no such level", []string{"--log-level=loud"}, `--log-level: slog: level string "loud": unknown name`},
		{"no level at all", []string{"--log-level="}, `--log-level: slog: level string "": unknown name`},
		{"no such format", []string{"--log-format=xml"}, `--log-format: "xml" is neither json nor text`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, logging := parse(t, c.arguments...)
			got := check.Message(logging.Validate())
			check.Equal(t, "complaint", c.want, got)
		})
	}
}

// The level determines which messages are written, the format how.
func TestLogger(t *testing.T) {
	for _, c := range []struct {
		arguments []string
		want      string
	}{
		{[]string{"--log-level=info"}, `"msg":"told","a":1`},
		{[]string{"--log-format=text"}, "msg=told a=1"},
		{[]string{"--log-level=error"}, ""},
	} {
		_, logging := parse(t, c.arguments...)
		var out strings.Builder
		logger, err := logging.logger(&out)
		check.Must(t, err)
		logger.Info("told", "a", 1)
		if got := out.String(); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%v: logged %q, want %q in it", c.arguments, got, c.want)
		}
	}
}

// The configuration is that of the file, with our user agent, and without a limit of requests
// on the client's side.
func TestConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	const kubeconfig = `{"clusters": [{"name": "c", "cluster": {"server": "https://a.example"}}],
		"contexts": [{"name": "c", "context": {"cluster": "c"}}], "current-context": "c"}`
	check.Must(t, os.WriteFile(file, []byte(kubeconfig), 0o600))
	connection, _ := parse(t, "--kubeconfig="+file)
	config, err := connection.Config("name")
	check.Must(t, err)
	if config.Host != "https://a.example" || config.QPS >= 0 || !strings.Contains(config.UserAgent, "name") {
		t.Errorf("configuration is %s, %v, %q", config.Host, config.QPS, config.UserAgent)
	}
	connection, _ = parse(t, "--kubeconfig="+file+".missing")
	if _, err := connection.Config("name"); err == nil {
		t.Error("a file that is not there is no error")
	}
}
