package reconcile

import (
	"context"
	"slices"

	"github.com/krake-observer/krake-observer/internal/apierror"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// inventoryPhase records objects in the inventory before the agent creates them. A restarted agent
// therefore knows each object that it created. While the hub does not answer, creation waits, and
// repairs of recorded objects continue.
type inventoryPhase struct{ hub hub }

func (c inventoryPhase) run(ctx context.Context, p *pass) (progress, error) {
	if !p.inputs.enforces {
		return goOn(), nil
	}
	held := slices.Clone(p.app.Inventory)
	add := func(o *object) {
		if !slices.Contains(held, o.plan.ID) {
			held = append(held, o.plan.ID)
		}
	}
	for _, o := range p.delta.missing {
		add(o)
	}
	for _, secret := range p.secrets {
		add(secret.object)
	}
	if p.app.Finalized && len(held) == len(p.app.Inventory) {
		return goOn(), nil
	}
	if c.hub.outage.Reserve(c.hub.now()) == 0 {
		err := c.store(ctx, p, held)
		if err != nil && !apierror.IsUnanswered(err) {
			return endWith(0), err
		}
		if err == nil {
			return goOn(), nil
		}
	}
	p.delta.missing = slices.DeleteFunc(p.delta.missing, func(o *object) bool {
		if o.isUnclaimed = !slices.Contains(p.app.Inventory, o.plan.ID); o.isUnclaimed {
			o.fail(errUnclaimed)
		}
		return o.isUnclaimed
	})
	for _, secret := range p.secrets {
		secret.isUnclaimed = !slices.Contains(p.app.Inventory, secret.plan.ID)
	}
	return goOn(), nil
}

// store writes the stored Application with an extended inventory, and changes nothing else.
func (c inventoryPhase) store(ctx context.Context, p *pass, held []manifest.ID) error {
	claimed := p.unarrived()
	claimed.Inventory, claimed.Finalized = held, true
	if claimed.Status.State == "" {
		claimed.Status.State = application.StateCreating
	}
	if err := c.hub.update(ctx, claimed, p.memory); err != nil {
		return err
	}
	p.app.Inventory, p.app.Finalized = held, true
	p.app.Version, p.app.LastApplied = claimed.Version, claimed.LastApplied
	if !p.isArriving {
		p.app.Status.State = claimed.Status.State
	}
	return nil
}
