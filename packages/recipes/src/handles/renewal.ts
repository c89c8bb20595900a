import { ZooKeeperError, type Client, type ErrorPolicy } from '@zabra/client/core'
import { withoutTimeout } from '@zabra/client/recipe-kit'
import { report } from '../support/report.ts'

const renewals = new WeakMap<Client, LeaseRenewal>()

/** Returns whether locks under this policy renew the lease of their session by transactions of their own. */
export const renewsLease = (policy: ErrorPolicy): boolean =>
  typeof policy === 'object' && (policy.lease.renew ?? 'commit') === 'commit'

/**
 * Keeps the lease of the client's session fresh until the returned function is called. All locks of a client share
 * one renewal.
 */
export function joinLeaseRenewal(client: Client): () => void {
  let renewal = renewals.get(client)
  if (renewal === undefined) renewals.set(client, (renewal = new LeaseRenewal(client)))
  return renewal.join()
}

/** Commits one empty transaction per third of the session timeout while any lock is held. */
class LeaseRenewal {
  readonly #client: Client
  #members = 0
  #cancel = (): void => {}

  constructor(client: Client) {
    this.#client = withoutTimeout(client)
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
    this.#cancel = clock.after(this.#client.session.timeoutMs / 3, 'renewal of the lease', () => {
      void this.#renew()
      this.#schedule()
    })
  }

  async #renew(): Promise<void> {
    if (this.#client.state !== 'connected') return
    try {
      await this.#client.syncCommitted({ retry: false, timeoutMs: this.#client.session.timeoutMs / 3 })
    } catch (error) {
      // The lease then runs out, which the handles check themselves.
      if (ZooKeeperError.is(error) && (error.retryable || error.scope !== 'request')) return
      report(this.#client, { recipe: 'lease', path: '/', phase: 'renewalFailed' })
    }
  }
}
