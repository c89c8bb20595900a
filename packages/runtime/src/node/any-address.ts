import dns from 'node:dns'
import type { LookupFunction } from 'node:net'
import { lightRandom } from './random.ts'

/**
 * The option `lookup` of a socket, as that of the system, with the addresses of a name in random order. A name may stand for
 * several servers, and a resolver may list them in the same order each time: all clients would use the first one, and would
 * go on with it while it accepts connections and refuses to serve.
 */
export const anyAddress: LookupFunction = (name, options, done) =>
  dns.lookup(name, { ...options, all: true }, (error, found) => {
    if (error !== null) return done(error, [])
    for (let i = found.length - 1; i > 0; i--) {
      const j = lightRandom.below(i + 1)
      ;[found[i], found[j]] = [found[j]!, found[i]!]
    }
    // A process may have switched off that sockets try several addresses.
    if (options.all === true) done(null, found)
    else done(null, found[0]!.address, found[0]!.family)
  })
