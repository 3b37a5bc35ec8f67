// Package proxy stands between one client and an API server. It simulates faults of a
// network, a server or a power supply, at a call that the test chooses and at no other.
//
//	p, err := proxy.Start(config)
//	err = p.WriteKubeconfig(theirs, through) // the same user, through the proxy
//	p.Intercept(func(c proxy.Call) *proxy.Fault {
//		if c.Number == 3 {
//			return &proxy.Fault{Sent: true} // carried out, without an answer
//		}
//		return nil
//	})
//
// The client's calls are numbered as they arrive, except those whose time is random:
//
//   - calls about Leases, which follow the clock;
//   - Events, which are sent concurrently;
//   - discovery;
//   - watches and lists of a whole kind.
//
// All of them except Leases can meet a fault too.
//
// The proxy speaks TLS on both sides, and passes the client's bearer token on. It
// cannot pass a client certificate on. It requests lists and watches as JSON, so that
// it can separate the events.
package proxy
