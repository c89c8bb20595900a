import { styleText } from 'node:util'
import type { Io, Output } from '../io.ts'

/** Kinds of output that stand out on a terminal. */
export type Style = 'heading' | 'good' | 'warning' | 'bad' | 'faint'

const formats = {
  heading: 'bold',
  good: 'green',
  warning: 'yellow',
  bad: 'red',
  faint: 'dim',
} as const satisfies Record<Style, string>

/** Adds the escape sequences of a style to a text, or none. */
export type Paint = (style: Style, text: string) => string

/**
 * Returns how to paint text for an output: with colours on a terminal, without elsewhere. A `NO_COLOR` that is not empty turns
 * colours off, and a `FORCE_COLOR` other than `0` on.
 */
export function painter({ environment }: Pick<Io, 'environment'>, output: Output): Paint {
  const { NO_COLOR = '', FORCE_COLOR = '', TERM } = environment
  const isForced = FORCE_COLOR !== '' && FORCE_COLOR !== '0'
  const isOff = NO_COLOR !== '' || FORCE_COLOR === '0' || (!isForced && TERM === 'dumb')
  if (isOff || !(isForced || output.isTTY === true)) return (_, text) => text
  return (style, text) => (text === '' ? text : styleText(formats[style], text, { validateStream: false }))
}

const changes: Readonly<Record<string, Style>> = { '+': 'good', '-': 'bad', '~': 'warning' }

/** Returns how to paint a line about a change, which begins with `+`, `-` or `~`. */
export function changePainter(io: Io): (line: string) => string {
  const paint = painter(io, io.stdout)
  return (line) => {
    const style = changes[line.trimStart().charAt(0)]
    return style === undefined ? line : paint(style, line)
  }
}
