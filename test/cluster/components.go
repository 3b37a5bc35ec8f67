package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// component is a program of the control plane.
type component struct {
	name   string
	path   string
	ports  int                        // number of ports
	args   func(ports []int) []string // its flags
	health func(ports []int) string   // the URL that answers 200 when the component is ready
}

// localURL returns the URL of a port.
func localURL(port int, path string) string {
	return fmt.Sprintf("https://127.0.0.1:%d%s", port, path)
}

// startEtcd starts etcd with TLS, although it is on this machine. Another cluster's
// etcd may take its port just before it listens. With TLS, neither the tests nor the
// API server can mistake that one for this one.
func (b *controlPlane) startEtcd(ctx context.Context) error {
	ports, err := b.launch(ctx, component{
		name:   "etcd",
		path:   b.Etcd,
		ports:  2,
		args:   b.etcdArgs,
		health: func(ports []int) string { return localURL(ports[0], "/health") },
	})
	if err != nil {
		return err
	}
	b.etcdURL = localURL(ports[0], "")
	return nil
}

func (b *controlPlane) etcdArgs(ports []int) []string {
	client, peer := localURL(ports[0], ""), fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	return []string{
		"--data-dir", b.file("etcd"),
		"--unsafe-no-fsync", // the data need not survive the machine
		"--listen-client-urls", client,
		"--advertise-client-urls", client,
		"--listen-peer-urls", peer,
		"--initial-advertise-peer-urls", peer,
		"--initial-cluster", "default=" + peer,
		"--cert-file", b.certificate("serving.crt"),
		"--key-file", b.certificate("serving.key"),
		"--client-cert-auth",
		"--trusted-ca-file", b.certificate("ca.crt"),
		"--enable-grpc-gateway=false", // it would call etcd with the server's certificate
	}
}

// startAPIServer starts the API server, and writes the administrator's kubeconfig when
// its port is known.
func (b *controlPlane) startAPIServer(ctx context.Context) error {
	ports, err := b.launch(ctx, component{
		name:   "kube-apiserver",
		path:   b.APIServer,
		ports:  1,
		args:   b.apiServerArgs,
		health: func(ports []int) string { return localURL(ports[0], "/readyz") },
	})
	if err != nil {
		return err
	}
	b.serverURL = localURL(ports[0], "")
	path, config, err := b.kubeconfigFor("admin", "admin", "system:masters")
	if err != nil {
		return err
	}
	return b.setConfig(path, config)
}

func (b *controlPlane) apiServerArgs(ports []int) []string {
	args := []string{
		"--etcd-servers", b.etcdURL,
		"--etcd-cafile", b.certificate("ca.crt"),
		"--etcd-certfile", b.certificate("etcd-client.crt"),
		"--etcd-keyfile", b.certificate("etcd-client.key"),
		"--bind-address", "127.0.0.1",
		"--secure-port", fmt.Sprint(ports[0]),
		"--tls-cert-file", b.certificate("serving.crt"),
		"--tls-private-key-file", b.certificate("serving.key"),
		"--client-ca-file", b.certificate("ca.crt"),
		// Without an address, the server looks for a network, which may not exist. It
		// must not publish this one: an EndpointSlice refuses loopback addresses.
		"--advertise-address", "127.0.0.1",
		"--endpoint-reconciler-type", "none",
		"--service-cluster-ip-range", serviceRange,
		"--authorization-mode", "Node,RBAC",
		"--allow-privileged",
		"--shutdown-watch-termination-grace-period", "1s", // by default it waits a minute for the end of watches
		"--service-account-issuer", "https://kubernetes.default.svc",
		"--service-account-signing-key-file", b.certificate("service-account.key"),
		"--service-account-key-file", b.certificate("service-account.key"),
	}
	args = append(args, b.frontProxyArgs()...)
	args = append(args, auditArgs(b.file("audit-policy.yaml"), b.auditLog)...)
	return append(args, b.options.APIServerArgs...)
}

// frontProxyArgs are the flags for aggregated API servers. There are none, but the API
// server requires the flags.
func (b *controlPlane) frontProxyArgs() []string {
	return []string{
		"--requestheader-client-ca-file", b.certificate("front-proxy-ca.crt"),
		"--requestheader-allowed-names", "front-proxy-client",
		"--requestheader-username-headers", "X-Remote-User",
		"--requestheader-group-headers", "X-Remote-Group",
		"--requestheader-extra-headers-prefix", "X-Remote-Extra-",
		"--proxy-client-cert-file", b.certificate("front-proxy-client.crt"),
		"--proxy-client-key-file", b.certificate("front-proxy-client.key"),
	}
}

func (b *controlPlane) startControllerManager(ctx context.Context) error {
	args := []string{
		"--use-service-account-credentials",
		"--service-account-private-key-file", b.certificate("service-account.key"),
		"--root-ca-file", b.certificate("ca.crt"),
		"--flex-volume-plugin-dir", b.file("flexvolume"), // the server creates this folder, by default outside of Dir
		"--kube-api-qps", "500", // the default of 20 requests a second makes the start three seconds longer
		"--kube-api-burst", "1000",
		"--controllers", "*,-persistentvolume-attach-detach-controller", // it wakes ten times a second, and there are no volumes
	}
	return b.startController(ctx, "kube-controller-manager", b.ControllerManager, append(args, b.options.ControllerArgs...)...)
}

// startController starts a client of the API server.
func (b *controlPlane) startController(ctx context.Context, name, path string, args ...string) error {
	kubeconfig, _, err := b.kubeconfigFor(name, "system:"+name)
	if err != nil {
		return err
	}
	_, err = b.launch(ctx, component{
		name:  name,
		path:  path,
		ports: 1,
		args: func(ports []int) []string {
			return append([]string{
				"--kubeconfig", kubeconfig,
				"--authentication-kubeconfig", kubeconfig,
				"--authorization-kubeconfig", kubeconfig,
				"--leader-elect=false",
				"--bind-address", "127.0.0.1",
				"--secure-port", fmt.Sprint(ports[0]),
				"--tls-cert-file", b.certificate("serving.crt"),
				"--tls-private-key-file", b.certificate("serving.key"),
			}, args...)
		},
		health: func(ports []int) string { return localURL(ports[0], "/healthz") },
	})
	return err
}

// command returns the command without the variables that etcd would read as flags: etcd
// refuses to start if they contradict its flags. Its garbage is collected rarely, because tests have more memory than processors.
func (c component) command(ports []int) *exec.Cmd {
	command := exec.Command(c.path, c.args(ports)...)
	command.Env = []string{"GOGC=400", "GOMEMLIMIT=1GiB"}
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "ETCD_") {
			command.Env = append(command.Env, variable)
		}
	}
	return command
}
