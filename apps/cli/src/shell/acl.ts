import type { ACL } from '@zabra/client'
import { UsageError } from '../exit-codes.ts'
import { parseAcl } from '../text/acl.ts'
import type { ShellContext } from './command.ts'

/** Parses an access list. On a syntax error prints the message of ZooKeeper's shell and returns an empty list. */
export function readAcl(shell: ShellContext, text: string): ACL[] {
  try {
    return parseAcl(text)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    const invalid = text.split(',').find((entry) => !/^\w+:.*:[cdrwa]*$/.test(entry)) ?? text
    shell.err(`${invalid} does not have the form scheme:id:perm`)
    return []
  }
}
