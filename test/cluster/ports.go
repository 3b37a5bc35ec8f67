package cluster

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Ports are below the range from which a system assigns ports (from 32768 on Linux,
// from 49152 elsewhere). No connection takes one by chance, even while its server
// restarts.
const firstPort, lastPort = 20000, 32767

var (
	portsLock sync.Mutex
	// claims reserves ports against every other process that chooses here, see claim.
	claims []io.Closer
)

// FreePorts returns ports of 127.0.0.1 at which nothing listens. While this process
// runs, no other call returns them, in any process.
func FreePorts(n int) ([]int, error) {
	portsLock.Lock()
	defer portsLock.Unlock()
	ports := make([]int, 0, n)
	var failures []error
	for len(ports) < n {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		if err := claim(port); err != nil {
			if failures = append(failures, err); len(failures) > 50 {
				return nil, fmt.Errorf("find %d free ports: %w", n, errors.Join(failures...))
			}
			continue
		}
		ports = append(ports, port)
	}
	return ports, nil
}

// FreeAddress returns 127.0.0.1 with one of [FreePorts].
func FreeAddress() (string, error) {
	ports, err := FreePorts(1)
	if err != nil {
		return "", err
	}
	return address(ports[0]), nil
}

// claim reserves a port while the process runs. Servers use TCP; the UDP port of the
// same number is the lock, which ends with its process in any case.
func claim(port int) error {
	lock, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address(port))
	if err != nil {
		return errors.Join(err, lock.Close())
	}
	claims = append(claims, lock)
	return listener.Close()
}

func address(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
