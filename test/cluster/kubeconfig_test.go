package cluster

import (
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/krake-observer/krake-observer/test/check"
)

// A replica that reads an incomplete file would end, and its suite would wait for it in
// vain.
func TestAKubeconfigIsReadWholeWhileItIsWritten(t *testing.T) {
	admin := newKubeconfig("hub", &clientcmdapi.Cluster{Server: "https://127.0.0.1:6443"}, "admin", &clientcmdapi.AuthInfo{})
	path := filepath.Join(t.TempDir(), "webhook.kubeconfig")
	write := func() error { return (&Cluster{config: admin}).WriteKubeconfig(path, "webhook", "a-token") }
	check.Must(t, write())
	writing := make(chan error)
	go func() {
		var err error
		for n := 0; n < 200 && err == nil; n++ {
			err = write()
		}
		writing <- err
	}()
	for reads := 0; ; reads++ {
		select {
		case err := <-writing:
			check.Must(t, err)
			return
		default:
		}
		read, err := clientcmd.LoadFromFile(path)
		if err != nil || read.AuthInfos["webhook"] == nil || read.AuthInfos["webhook"].Token != "a-token" {
			t.Errorf("read %d: %v, %v", reads, read, err)
		}
		if t.Failed() {
			check.Must(t, <-writing)
			return
		}
	}
}
