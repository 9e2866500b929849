import { spawn } from 'node:child_process';

/**
 * Runs a program to its end, without a shell, so that no path needs quoting.
 * @param {string} command
 * @param {string[]} args
 * @param {{cwd?: string, env?: NodeJS.ProcessEnv, uid?: number, gid?: number, show?: boolean, input?: string}} options
 *   `show`: its output goes to this terminal instead of into `output`
 * @returns {Promise<{code: number, output: string}>} code 127: the program is not there. Never rejects.
 */
export function run(command, args, { show = false, ...options } = {}) {
  return new Promise((resolve) => {
    const stdio = show ? ['ignore', 'inherit', 'inherit'] : ['ignore', 'pipe', 'pipe'];
    const child = spawn(command, args, { ...options, stdio });
    let output = '';
    const collect = (chunk) => {
      output += chunk;
    };
    child.stdout?.setEncoding('utf8').on('data', collect);
    child.stderr?.setEncoding('utf8').on('data', collect);
    child.on('error', (error) => resolve({ code: error.code === 'ENOENT' ? 127 : 126, output: error.message }));
    child.on('close', (code, signal) => resolve({ code: code ?? 1, output: signal ? `${output}\n${signal}` : output }));
  });
}

/** The last line of an output that is not empty: most programs say there what went wrong. */
export function lastLine(output) {
  return output.trim().split('\n').at(-1)?.trim() ?? '';
}
