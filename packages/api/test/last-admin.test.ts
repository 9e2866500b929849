import { expect } from 'chai';
import { expectProblem } from '../../../test/support/problem.js';
import { useInProcess } from './support/in-process.js';

describe('the last admin of a project (section 2)', () => {
  const app = useInProcess();

  it('is left by any number of admins that leave, or step down, at once', async () => {
    for (let round = 0; round < 10; round += 1) {
      const admins = await Promise.all([app.newUser(), app.newUser(), app.newUser()]);
      const projectId = await app.newProject(Object.fromEntries(admins.map(({ id }) => [id, 'admin' as const])));
      const path = `/projects/${projectId}/members`;
      const answers = await Promise.all(
        admins.map(({ id, http }, index) =>
          index === 0 ? http.put(`${path}/${id}`, { role: 'viewer' }) : http.delete(`${path}/${id}`),
        ),
      );
      expect(answers.map(({ status }) => status).sort()).to.deep.equal([200, 200, 409]);
      expectProblem(answers.find(({ status }) => status === 409)!, 409, 'last_admin');
      const left = await app.db.query("select from members where project_id = $1 and role = 'admin'", [projectId]);
      expect(left).to.have.length(1);
    }
  });

  it('stays the admin where an admin is set to admin again', async () => {
    const admin = await app.newUser();
    const projectId = await app.newProject({ [admin.id]: 'admin' });
    const again = await admin.http.put(`/projects/${projectId}/members/${admin.id}`, { role: 'admin' });
    expect(again.status).to.equal(200);
  });
});
