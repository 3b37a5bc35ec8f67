package cluster

import (
	"net"
	"testing"
)

func TestFreePorts(t *testing.T) {
	seen := map[int]bool{}
	for range 40 {
		ports, err := FreePorts(5)
		must(t, err)
		for _, port := range ports {
			if seen[port] {
				t.Errorf("port %d is given twice", port)
			}
			seen[port] = true
			listener, err := net.Listen("tcp", address(port))
			if err != nil {
				t.Errorf("a free port: %v", err)
				continue
			}
			listener.Close()
		}
	}
}

func TestPortIsClaimed(t *testing.T) {
	ports, err := FreePorts(1)
	must(t, err)
	if err := claim(ports[0]); err == nil {
		t.Errorf("port %d was given away, and can be claimed again before anything listens there", ports[0])
	}
}

func TestPortInUse(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	for range 2 { // refused claims are not kept
		if err := claim(port); err == nil {
			t.Errorf("port %d, at which somebody listens, can be claimed", port)
		}
	}
	again, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", address(port))
	if err != nil {
		t.Fatalf("a claim that was refused is held: %v", err)
	}
	again.Close()
}
