package hooks_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/internal/hooks"
	"github.com/krake-observer/krake-observer/pkg/application"
)

// sayComplete is what a job runs at its end. It uses only the variables and the files that are
// injected into its containers. It reads the files late, because they are renewed while a Pod
// runs.
func sayComplete(folder string) (string, error) {
	authority, err := os.ReadFile(filepath.Join(folder, "ca-bundle.pem"))
	if err != nil {
		return "", err
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem"))
	if err != nil {
		return "", err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool(), Certificates: []tls.Certificate{pair}}
	config.RootCAs.AppendCertsFromPEM(authority)
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{TLSClientConfig: config}}

	body, err := json.Marshal(map[string]string{"token": os.Getenv("KRAKE_COMPLETE_TOKEN")})
	if err != nil {
		return "", err
	}
	//nolint:gosec // the variable is the agent's, and names the endpoint
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPut, os.Getenv("KRAKE_COMPLETE_URL"), bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request) //nolint:gosec // see above
	if err != nil {
		return "", err // to be tried again, as are 429 and 503
	}
	var answer struct {
		Status struct{ State string }
	}
	err = errors.Join(json.NewDecoder(response.Body).Decode(&answer), response.Body.Close())
	return response.Status + " " + answer.Status.State, err
}

// A job reports that its work is done, and its Application is deleted.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	folder, err := inject(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	said, err := sayComplete(folder)
	fmt.Println(said, errors.Join(err, os.RemoveAll(folder)))
	// Output:
	// 200 OK DELETING <nil>
}

// inject acts as the agent and the kubelet: the two Secrets of the hook become variables and
// files. In a Pod the folder is /etc/krake_complete_certs/.
func inject(ctx context.Context) (folder string, err error) {
	inner, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	endpoint, err := hooks.ParseEndpoint("https://" + inner.Addr().String())
	if err != nil {
		return "", err
	}
	issuer := hooks.NewIssuer(&keeper{}, endpoint, time.Now, logr.Discard())
	if err := issuer.Look(ctx); err != nil {
		return "", err
	}
	app := &application.Application{
		NamespacedName: types.NamespacedName{Namespace: "demo", Name: "web"}, UID: "bb1b2b52",
		Spec: application.Spec{Hooks: application.Hooks{Complete: true}},
	}
	variables, err := issuer.Data(app.NamespacedName, app.UID, application.Complete, false, nil)
	if err != nil {
		return "", err
	}
	files, err := issuer.Data(app.NamespacedName, app.UID, application.Complete, true, nil)
	if err != nil {
		return "", err
	}
	app.Hooks.Tokens = map[application.Hook]string{
		application.Complete: application.DigestOf(variables[application.TokenKey(application.Complete)]),
	}
	server, err := hooks.NewServer(hooks.ServerOptions{
		Issuer: issuer, Applications: one{app}, Actions: deletes{}, Logger: logr.Discard(), Registerer: prometheus.NewRegistry(), Now: time.Now,
	})
	if err != nil {
		return "", err
	}
	go func() {
		if err := server.Serve(ctx, inner); err != nil {
			fmt.Println(err)
		}
	}()
	return write(variables, files)
}

func write(variables, files map[string][]byte) (folder string, err error) {
	for variable, key := range map[string]string{
		application.TokenVariable(application.Complete): application.TokenKey(application.Complete),
		application.URLVariable(application.Complete):   application.URLKey(application.Complete),
	} {
		if err := os.Setenv(variable, string(variables[key])); err != nil {
			return "", err
		}
	}
	if folder, err = os.MkdirTemp("", "krake_complete_certs"); err != nil {
		return "", err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			return "", err
		}
	}
	return folder, nil
}

type one struct{ app *application.Application }

func (o one) Get(context.Context, types.NamespacedName) (*application.Application, error) {
	return o.app, nil
}

type deletes struct{ hooks.Actions }

func (deletes) Complete(context.Context, *application.Application) (application.State, error) {
	return application.StateDeleting, nil
}

type keeper struct{ certificate, key []byte }

func (k *keeper) Load(context.Context) (certificate, key []byte, err error) {
	return k.certificate, k.key, nil
}

func (k *keeper) Store(_ context.Context, certificate, key []byte) error {
	k.certificate, k.key = certificate, key
	return nil
}
