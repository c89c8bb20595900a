import type { Network } from '@zabra/runtime'
import { Failure, ExitCode, judge } from '../exit-codes.ts'
import { parseServers } from './address.ts'
import { WireSession } from './wire-session.ts'
import { Wire } from './wire.ts'
import type { ZooKeeper } from './zookeeper.ts'

/** Where to connect, as whom, and how long to wait. */
export interface SessionOptions {
  readonly server: string
  readonly auth: readonly { readonly scheme: string; readonly credential: string }[]
  /** Milliseconds: the session's timeout, and how long to look for a server that answers. */
  readonly timeoutMs: number
}

/**
 * Opens a session on the first server that answers and proves every identity. Rejects with what each server said when
 * none does.
 */
export async function openSession(
  options: SessionOptions,
  network: Network,
  signal: AbortSignal,
): Promise<ZooKeeper> {
  const { servers, chroot } = parseServers(options.server)
  const reasons: string[] = []
  for (const server of servers) {
    signal.throwIfAborted()
    let wire: Wire
    try {
      wire = await Wire.open(network, server, options.timeoutMs, signal)
    } catch (error) {
      signal.throwIfAborted()
      reasons.push(judge(error).line)
      continue
    }
    return authenticated(new WireSession(wire, chroot), options.auth)
  }
  throw new Failure(
    `${reasons.join('; ')}. Check that a server runs there, or name another one with --server or ZABRA_SERVER.`,
    ExitCode.connection,
  )
}

async function authenticated(zk: ZooKeeper, auth: SessionOptions['auth']): Promise<ZooKeeper> {
  try {
    for (const { scheme, credential } of auth) await zk.addAuth(scheme, new TextEncoder().encode(credential))
    return zk
  } catch (error) {
    await zk.close()
    throw error
  }
}
