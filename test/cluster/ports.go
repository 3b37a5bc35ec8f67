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

// Ports are chosen from below those that a system gives to whoever asks for any (from
// 32768 on Linux, from 49152 elsewhere): no connection takes one by chance, also while
// what listens there is restarted.
const firstPort, lastPort = 20000, 32767

var (
	portsLock sync.Mutex
	// claims keeps ports from every other process that chooses here, see claim.
	claims []io.Closer
)

// FreePorts gives ports of 127.0.0.1 at which nothing listens. None is given twice while
// this process runs, neither by it nor by another one that asks here.
func FreePorts(n int) ([]int, error) {
	portsLock.Lock()
	defer portsLock.Unlock()
	ports := make([]int, 0, n)
	var failures []error
	for len(ports) < n {
		port := firstPort + rand.IntN(lastPort-firstPort+1) //nolint:gosec // nobody has to be kept from guessing it
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

// FreeAddress gives 127.0.0.1 with one of [FreePorts].
func FreeAddress() (string, error) {
	ports, err := FreePorts(1)
	if err != nil {
		return "", err
	}
	return address(ports[0]), nil
}

// claim keeps a port for as long as the process runs. What is to listen there listens by
// TCP: its namesake of UDP is a lock that ends with its owner, however that ends.
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
