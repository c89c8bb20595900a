import { FatalError, RecoverableError, type Client, type ErrorPolicy } from '@zabra/client/core'

const renewals = new WeakMap<Client, LeaseRenewal>()

/** Whether rights under this policy renew the lease of their session by transactions of their own. */
export const renewsLease = (policy: ErrorPolicy): boolean =>
  typeof policy === 'object' && (policy.lease.renew ?? 'commit') === 'commit'

/** Keeps the lease of a client's session fresh until the returned function is called. All rights of a client share one. */
export function joinLeaseRenewal(client: Client): () => void {
  let renewal = renewals.get(client)
  if (renewal === undefined) renewals.set(client, (renewal = new LeaseRenewal(client)))
  return renewal.join()
}

/** One transaction without effect per third of the session's timeout while anything is held. */
class LeaseRenewal {
  readonly #client: Client
  #members = 0
  #cancel = (): void => {}

  constructor(client: Client) {
    this.#client = client
  }

  join(): () => void {
    if (this.#members++ === 0) this.#schedule()
    let left = false
    return () => {
      if (left) return
      left = true
      if (--this.#members === 0) this.#cancel()
    }
  }

  #schedule(): void {
    const { clock } = this.#client.platform
    this.#cancel = clock.after(this.#client.session.timeout / 3, 'renewal of the lease', () => {
      void this.#renew()
      this.#schedule()
    })
  }

  async #renew(): Promise<void> {
    if (this.#client.state !== 'connected') return
    try {
      await this.#client.syncCommitted({ retry: false, timeout: this.#client.session.timeout / 3 })
    } catch (error) {
      // Then the lease runs out, which is what its holders look at.
      if (error instanceof RecoverableError || error instanceof FatalError) return
      this.#client.instrumentation?.recipe?.({ recipe: 'lease', path: '/', phase: 'renewalFailed' })
    }
  }
}
