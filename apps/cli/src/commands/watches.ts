import { Option } from 'commander'
import { nodePath, sessionId } from '../arguments.ts'
import type { CommandModule, Context } from '../context.ts'
import { note, print, printJson } from '../io.ts'
import { openAdmin, withAdminOption, type AdminFlags } from '../session/admin-options.ts'
import { safeLine } from '../text/bytes.ts'

interface Flags extends AdminFlags {
  readonly path?: string
  readonly session?: string
  readonly kind?: string
}

interface Page {
  readonly watches: readonly {
    readonly session: string
    readonly path: string
    readonly kinds: readonly string[]
  }[]
  readonly next: string | null
}

const PAGE = 1000

/** `zabra watches`: the watches of a server. */
export const watches: CommandModule = (program, context) => {
  withAdminOption(program.command('watches'))
    .description('print the watches that clients of a server have set, by session and path')
    .option('--path <path>', 'only those on exactly this path', nodePath)
    .option('--session <id>', 'only those of this session', sessionId)
    .addOption(
      new Option('--kind <kind>', 'only those of this kind').choices([
        'data',
        'exist',
        'child',
        'persistent',
        'persistentRecursive',
      ]),
    )
    .action((flags: Flags) => list(context, flags))
}

async function list(context: Context, flags: Flags): Promise<void> {
  const { io, options } = context
  const { path, session, kind } = flags
  const admin = openAdmin(context, flags)
  const { json } = options()
  const filters = Object.entries({ path, session, kind }).filter(([, value]) => value !== undefined)
  let isEmpty = true
  // There may be a million: each page is printed before the next one is asked for.
  for (let after: string | null | undefined; after !== null;) {
    const query = new URLSearchParams([['limit', String(PAGE)], ...(filters as [string, string][])])
    if (after !== undefined) query.set('after', after)
    const page: Page = await admin.json<Page>('GET', `/api/v1/watches?${query.toString()}`)
    for (const watch of page.watches)
      if (json) printJson(io, watch)
      else print(io, safeLine(`${watch.session}  ${watch.kinds.join(',')}  ${watch.path}`))
    isEmpty &&= page.watches.length === 0
    after = page.next
  }
  if (isEmpty && !json) note(io, 'there are none on this server')
}
