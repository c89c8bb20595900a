import type { ShellCommand } from '../command.ts'

/** Whether changes are printed. */
export const printWatches: ShellCommand = {
  usage: 'printwatches on|off',
  offline: true,
  run(shell, { words: [to] }) {
    if (to === undefined) shell.out(`printwatches is ${shell.printsWatches ? 'on' : 'off'}`)
    else shell.printsWatches = to === 'on'
  },
}
