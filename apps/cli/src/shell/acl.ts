import type { ACL } from '@zabra/protocol'
import { UsageError } from '../exit-codes.ts'
import { parseAcl } from '../text/acl.ts'
import type { Shell } from './shell.ts'

/** Reads an access list. Complains as ZooKeeper's shell does of what is none, and gives an empty one then. */
export function readAcl(shell: Shell, text: string): ACL[] {
  try {
    return parseAcl(text)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    const wrong = text.split(',').find((entry) => !/^\w+:.*:[cdrwa]*$/.test(entry)) ?? text
    shell.err(`${wrong} does not have the form scheme:id:perm`)
    return []
  }
}
