import { checkArgument, oneOf, text, whole, type Rule } from '../checks.ts'
import type { ServerAddress } from '../platform.ts'
import { addressKey as keyOf } from './connect-string.ts'

const aScheme = oneOf('tcp', 'tls', 'ws', 'wss')
export const aServer: Rule = [
  '{ scheme, host, port }',
  (value) => {
    const { scheme, host, port, url } = (value ?? {}) as Partial<ServerAddress>
    return aScheme[1](scheme) && text(host) && whole(1, 65_535)(port) && (url === undefined || text(url))
  },
]

/** Returns a string that identifies a server. Throws a `UsageError` for something else than an address. */
export function addressKey(server: ServerAddress): string {
  checkArgument('addressKey', 'a server', server, aServer)
  return keyOf(server)
}
