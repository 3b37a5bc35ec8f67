// Package proxy stands between one client and an API server, and has things go
// wrong that a network, a server or a power cut do to a client: at a call that
// the test chooses, and at that call alone.
//
//	p, err := proxy.Start(config)
//	err = p.WriteKubeconfig(theirs, through) // the same user, through the proxy
//	p.Intercept(func(c proxy.Call) *proxy.Fault {
//		if c.Number == 3 {
//			return &proxy.Fault{Sent: true} // carried out, but nobody hears of it
//		}
//		return nil
//	})
//
// The client's calls are numbered as they arrive. Some are not, because when
// they come is chance: those about Leases, which follow the clock, Events, which
// go out beside the work, questions what is served, and watches and lists of a
// whole kind. All of them but the Leases can be met with a fault too.
//
// It speaks TLS on both sides, and hands on the bearer token of the client; a
// client certificate would not get through. What is watched or listed is asked
// for as JSON, so that single events can be told apart.
package proxy
