import { addressKey, findServers as find, parseServers as parse, type ServerAddress } from '@zabra/client'
import { ExitCode, Failure, UsageError } from '../exit-codes.ts'

const addressAdvice = 'Give host:port, or host:port,host:port/path for several servers and a root below /.'

/** Parses a connect string: servers separated by commas, then an optional chroot. Throws a `UsageError` when it is malformed. */
export function parseServers(text: string): { servers: readonly ServerAddress[]; chroot: string } {
  try {
    return parse(text)
  } catch (error) {
    throw new UsageError(`${(error as Error).message}. ${addressAdvice}`, { cause: error })
  }
}

/** Parses a connect string and looks up the servers of a `dns-srv` name. Rejects with a `Failure` when the lookup times out. */
export async function resolveServers(
  text: string,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<{ servers: readonly ServerAddress[]; chroot: string }> {
  if (!isSrvName(text)) return parseServers(text)
  const timeout = AbortSignal.timeout(timeoutMs)
  try {
    return await find(text, { signal: AbortSignal.any([signal, timeout]) })
  } catch (error) {
    signal.throwIfAborted()
    const { message } = error as Error
    if (!timeout.aborted) throw new UsageError(`${message}. ${addressAdvice}`, { cause: error })
    throw new Failure(`${message}. ${srvAdvice}`, ExitCode.connection, { cause: error })
  }
}

/** Whether the servers of a connect string come from SRV records. */
export const isSrvName = (text: string): boolean => text.startsWith('dns-srv')

export const srvAdvice =
  'Check the name of the service and that its servers are running, or name them with --server or ZABRA_SERVER.'

/** Returns the connected server as the user types it; `fallback` without a connection. */
export const serverOf = ({ server }: { readonly server?: string | undefined }, fallback: string): string =>
  server?.replace(/^tcp:../, '') ?? fallback

/** Formats an address as the user types it: `host:port` for TCP. */
export const formatServer = (server: ServerAddress): string => addressKey(server).replace(/^tcp:../, '')
