import { addressKey, findServers as find, parseServers as parse, type ServerAddress } from '@zabra/client'
import { ExitCode, Failure, UsageError } from '../exit-codes.ts'

const addressAdvice = 'Give host:port, or host:port,host:port/path for several servers and a root below /.'

/** Reads a connect string: servers with commas between them, and after them the path that is to be the root. */
export function parseServers(text: string): { servers: readonly ServerAddress[]; chroot: string } {
  try {
    return parse(text)
  } catch (error) {
    throw new UsageError(`${(error as Error).message}. ${addressAdvice}`, { cause: error })
  }
}

/** The same, with the servers of a service looked up. Rejects when nobody tells them in time. */
export async function resolveServers(
  text: string,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<{ servers: readonly ServerAddress[]; chroot: string }> {
  if (!isSrvName(text)) return parseServers(text)
  const limit = AbortSignal.timeout(timeoutMs)
  try {
    return await find(text, { signal: AbortSignal.any([signal, limit]) })
  } catch (error) {
    signal.throwIfAborted()
    const { message } = error as Error
    if (!limit.aborted) throw new UsageError(`${message}. ${addressAdvice}`, { cause: error })
    throw new Failure(`${message}. ${srvAdvice}`, ExitCode.connection, { cause: error })
  }
}

/** Whether the servers are told by SRV records. */
export const isSrvName = (text: string): boolean => text.startsWith('dns-srv')

export const srvAdvice =
  'Check the name of the service and that its servers run, or name them with --server or ZABRA_SERVER.'

/** The address as it is typed. */
export const formatServer = (server: ServerAddress): string => addressKey(server).replace(/^tcp:../, '')
