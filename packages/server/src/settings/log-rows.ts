import { oneOf, optional } from './value-types.ts'
import { row } from './row.ts'

/** The log of the server. */
export const logRows = {
  logFormat: row({
    group: 'Log',
    key: 'log.format',
    type: optional(oneOf('json', 'text', 'apache')),
    defaultValue: undefined,
    defaultText: '`text` on a terminal, `json` otherwise',
    isOwn: true,
    description:
      'Form of the lines that `zabra-server` writes: `json` has all fields, `text` is for a terminal, `apache` has the layout of Apache ZooKeeper. A program that embeds a server brings its own logger.',
  }),
} as const
